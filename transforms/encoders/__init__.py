"""Encoders: texts to vectors, by any model behind one small interface."""
