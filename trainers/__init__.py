"""Training and evaluation on finished datasets; never imports apache_beam."""
