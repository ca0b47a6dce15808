"""Integration of the posterior where the network has one free parameter."""
