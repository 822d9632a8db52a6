"""What clients of the OpenAI API for Python make of `hachi serve`: python client.py TASK, with HACHI_URL and
HACHI_KEY set. Prints what it saw as one line of JSON; ../test_python.py says what that should be."""

import json
import os
import sys

URL, KEY = os.environ["HACHI_URL"], os.environ["HACHI_KEY"]
PARAMETERS = {"type": "object", "properties": {"town": {"type": "string"}}, "required": ["town"]}
WEATHER = {"name": "weather", "description": "The weather of a town", "parameters": PARAMETERS}


def litellm():
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # otherwise it fetches prices
    import litellm

    litellm.telemetry = False
    about = {"model": "openai/hachi", "api_base": URL, "api_key": KEY, "max_retries": 0}
    messages = [{"role": "user", "content": "how is Lyon?"}]
    tools = [{"type": "function", "function": WEATHER}]
    first = litellm.completion(messages=messages, tools=tools, **about).choices[0]
    [call] = first.message.tool_calls
    messages += [first.message.model_dump(), {"role": "tool", "tool_call_id": call.id, "content": "sunny"}]
    stream = litellm.completion(messages=messages, tools=tools, temperature=0.2, stream=True, **about)
    text = "".join(chunk.choices[0].delta.content or "" for chunk in stream)
    return {"call": call.function.name, "given": json.loads(call.function.arguments), "text": text}


def langchain():
    from langchain_core.messages import HumanMessage, ToolMessage
    from langchain_openai import ChatOpenAI
    from pydantic import BaseModel

    class Town(BaseModel):
        """A town."""

        name: str
        people: int

    chat = ChatOpenAI(model="hachi", base_url=URL, api_key=KEY, max_retries=0, temperature=0.2)
    messages = [HumanMessage("how is Lyon?")]
    with_tools = chat.bind_tools([{"type": "function", "function": WEATHER}])
    asked = with_tools.invoke(messages)
    [call] = asked.tool_calls
    messages += [asked, ToolMessage("sunny", tool_call_id=call["id"])]
    text = "".join(str(chunk.content) for chunk in with_tools.stream(messages))
    town = chat.with_structured_output(Town, method="json_schema").invoke("Which town?")
    return {"call": call["name"], "given": call["args"], "text": text, "town": town.model_dump()}


def pydantic_ai():
    from pydantic import BaseModel
    from pydantic_ai import Agent, NativeOutput
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
    from pydantic_ai.providers.openai import OpenAIProvider

    class Town(BaseModel):
        """A town."""

        name: str
        people: int

    given, provider = [], OpenAIProvider(base_url=URL, api_key=KEY)
    agent = Agent(OpenAIChatModel("hachi", provider=provider), model_settings={"temperature": 0.2})

    @agent.tool_plain
    def weather(town: str) -> str:
        """The weather of a town."""
        given.append({"town": town})
        return "sunny"

    asked = agent.run_sync("how is Lyon?")
    town = agent.run_sync(
        "Which town?", output_type=NativeOutput(Town), message_history=asked.all_messages()
    ).output
    responses = Agent(OpenAIResponsesModel("hachi", provider=provider))
    first = responses.run_sync("Name a pet")
    again = responses.run_sync("And another", message_history=first.all_messages())
    return {
        "call": "weather",
        "given": given[0],
        "text": asked.output,
        "town": town.model_dump(),
        "pets": [first.output, again.output],
    }


print(json.dumps({"litellm": litellm, "langchain": langchain, "pydantic_ai": pydantic_ai}[sys.argv[1]]()))
