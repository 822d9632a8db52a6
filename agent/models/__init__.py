"""Language models: choosing one, asking it one question, and the questions memory asks (judge, rerank)."""
