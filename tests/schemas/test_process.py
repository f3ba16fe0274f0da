import subprocess
import sys


def said_by(program: str) -> str:
    """What another process prints: this one cannot undo its imports."""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_arrow_makes_arrays_without_pandas_which_can_still_be_imported():
    said = said_by("""
import sys
from schemas.process import leave_out_pandas
leave_out_pandas()
import pyarrow as pa
table = pa.table({"text": ["a", None], "number": [1.5, float("nan")]})
print("pandas" in sys.modules, table.num_rows, table["number"].null_count, len(table.to_pandas()))
""")
    assert said == "False 2 0 2"


def test_a_module_is_not_there_until_the_end_unless_it_is_loaded():
    said = said_by("""
import json
from schemas.process import without
with without("json", "wave"):
    import json
    try:
        import wave
    except ModuleNotFoundError as error:
        print(error.name)
import wave
print(wave.__name__)
""")
    assert said == "wave\nwave"


def test_a_reader_that_has_enough_is_no_error():
    program = """
from schemas.process import until_pipe_closes
with until_pipe_closes():
    for number in range(100_000):
        print(number)
print("more")
"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as done:
        assert done.stdout.readline() == b"0\n"
        done.stdout.close()
        assert (done.stderr.read(), done.wait()) == (b"", 0)
