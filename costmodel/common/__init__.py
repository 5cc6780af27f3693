"""What both towers may use: no SymPy in here."""
