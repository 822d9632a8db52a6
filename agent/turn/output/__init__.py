"""The answer: its model (`answer`), a lenient parser (`parse`), and its streamed text (`streamed_text`)."""
