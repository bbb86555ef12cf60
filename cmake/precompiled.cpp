// Nothing but the place where the headers that every room includes are compiled once.
