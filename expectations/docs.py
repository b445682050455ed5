"""Great Expectations' Data Docs, as files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

_SITE = "acktrail"


def build_docs(gx_context: Any, directory: Path) -> None:
    """Data Docs of what *gx_context* has just validated, in *directory*."""
    for site in list(gx_context.get_site_names()):
        gx_context.delete_data_docs_site(site)
    gx_context.add_data_docs_site(
        _SITE,
        {
            "class_name": "SiteBuilder",
            "store_backend": {
                "class_name": "TupleFilesystemStoreBackend",
                "base_directory": str(directory.absolute()),
            },
            "site_index_builder": {"class_name": "DefaultSiteIndexBuilder"},
        },
    )
    gx_context.build_data_docs(site_names=[_SITE])
