"""The report of a study: its live page as one HTML file that needs no network."""

from lynceus.report_page.page import page, report_documents

__all__ = ["page", "report_documents"]
