"""What is remembered: records, the database, the index, and how facts are kept and found."""
