"""The demo: a synthetic job, tuned while the user watches, compared with other policies and plotted."""
