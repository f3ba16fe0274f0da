"""Training of the parser `phrasemill`: a teacher, its labels on raw text, a small student, the ONNX file."""
