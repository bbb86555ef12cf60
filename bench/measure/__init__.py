"""The parts of bench/overhead: workloads to slow down, profilers that do it, and the table."""
