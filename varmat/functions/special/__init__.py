"""Special functions as tables, and the algorithms of derivatives that no closed form has."""
