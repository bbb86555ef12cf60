"""What lab/run is made of: scenarios, sessions, expectations, truth."""
