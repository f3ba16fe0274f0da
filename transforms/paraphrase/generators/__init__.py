"""Paraphrase generators: phrases to candidates, by any model behind one small interface."""
