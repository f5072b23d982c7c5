"""The report of a study: one HTML file that needs no network."""

from lynceus.report_page.page import page

__all__ = ["page"]
