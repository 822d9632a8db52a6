"""Operations that surfaces call, apart from turns."""
