"""What FABRIC and CloudLab need to build a lab's network."""
