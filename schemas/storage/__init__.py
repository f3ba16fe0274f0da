"""Storage of datasets: folders on a disk or an object store, atomic files, addresses."""
