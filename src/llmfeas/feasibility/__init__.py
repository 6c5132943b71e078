"""Can it be done: memory, time, cost and software of one settled question, joined, judged and explained."""
