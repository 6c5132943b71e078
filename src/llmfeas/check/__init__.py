"""What must hold: expectations for continuous integration, read and judged, and stored estimates compared."""
