"""Answers to questions about a Dockerfile, by which nothing is built: `docker build --call`."""

from msgspec import structs

from husk.builder.dockerfile import questions
from husk.builder.dockerfile.checks import Checks
from husk.builder.dockerfile.convert import convert
from husk.builder.dockerfile.errors import DockerfileError
from husk.builder.dockerfile.options import Options, Sources
from husk.builder.dockerfile.parse import parse
from husk.builder.graph.graph import SourceFile
from husk.builder.jobs import failure


async def answer_to(
    request: str, text: str, options: Options, sources: Sources, source: SourceFile
) -> questions.Answer:
    """The answer to a question about a Dockerfile. What is wrong with the file is part of what a check says."""
    if request not in questions.QUESTIONS:
        raise failure.UnknownQuestion(request)
    if request == questions.DESCRIBE:
        return questions.described()
    if request == questions.LINT:
        checks, wrong = Checks(), None
        options = structs.replace(options, all_stages=not options.target)
        try:
            await convert(text, options, sources, file_name=source.name, checks=checks)
        except DockerfileError as error:
            wrong = error
        return questions.lint(source, checks.warnings, wrong)
    if request == questions.TARGETS:
        return questions.targets(source, parse(text))
    result = await convert(text, options, sources, file_name=source.name)
    return questions.outlined(source, parse(text), options.target, result)
