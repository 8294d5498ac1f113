"""Functions of SciPy that few models need. They are imported when one of them is first used, and
`import varmat` loads none of them.
"""
