"""Models of several tasks at once, told what is known of each: of its training data above all."""
