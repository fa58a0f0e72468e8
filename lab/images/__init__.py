"""Container images of the lab's parts: which there are, what is in them, how they are built.

declared.py  the images, as generations and services ask for them
fill.py      runs while an image is built: unpacks there what its part's launch code will ask for
context.py   what a build is given: Dockerfile, the lab's own code, its Python packages, what the cache has
build.py     builds by the Docker engine, and tells what is there
here.py      whether a lab in containers can start
compose.py   the same images for use by hand with Docker Compose
command.py   `iceberg-lab images`, `iceberg-lab compose`
"""
