"""Ask for the bot in `hachi setup`: its tokens, each tested with one call, and who may use it."""

from functools import partial
from importlib.resources import files

from agent.errors import BadInput
from agent.settings import Settings, variable_of
from agent.surfaces.cli.operate.servers import discord_access, slack_access
from agent.surfaces.cli.operate.setup.dialogue import Dialogue

BOTS = ("discord", "slack")
STEPS = {
    "discord": """\
1. Open https://discord.com/developers/applications, New Application, give it a name, Create.
2. On its page Bot, under Privileged Gateway Intents, switch on Message Content Intent, and save.
3. On the same page: Reset Token, Copy.""",
    "slack": """\
1. Open https://api.slack.com/apps, Create New App, From a manifest, pick your workspace, choose YAML, and
   paste what stands above.
2. Install App, Install to your workspace, Allow. The Bot User OAuth Token is the bot's token.
3. Basic Information, App-Level Tokens, Generate Token and Scopes: any name, the scope connections:write,
   Generate. That is the app's token.""",
}
TOKENS = {
    "discord_token": "The bot's token",
    "slack_bot_token": "The bot's token, xoxb-…",
    "slack_app_token": "The app's token, xapp-…",
}
WHO = {
    "discord_servers": "Only in these servers (ids with commas; empty is all that it is in)",
    "discord_channels": "Only in these channels (ids; empty is all that it sees)",
    "discord_roles": "Only for people with one of these roles (ids; empty is everybody)",
    "bot_daily_turns": "Turns a day for one person (0 is any number)",
}


async def ask_for_bot(talk: Dialogue) -> list[str]:
    """Return the names of the bots that are configured. Raises HachiError without a terminal."""
    today = next((bot for bot in BOTS if talk.value(_tokens(bot)[0])), "none")

    def read(text: str) -> list[str]:
        text = text.lower()
        if text not in (*BOTS, "none"):
            raise BadInput(f"{text!r} is no bot; give discord, slack or none")
        return [text] if text in BOTS else []

    bots = [bot for bot in BOTS if any(map(talk.answers, _tokens(bot)))]
    if not bots or talk.answers("bot"):
        bots = await talk.ask("bot", "Be a bot, too? discord, slack or none", read, today=today)
    for bot in bots:
        await _ask_for_tokens(talk, bot)
    for name, question in WHO.items():
        if talk.answers(name) or (bots and name == "bot_daily_turns") or "discord" in bots:
            await talk.set(name, question)
    return bots


def _tokens(bot: str) -> list[str]:
    return [name for name in TOKENS if name.startswith(bot)]


async def _ask_for_tokens(talk: Dialogue, bot: str) -> None:
    if not all(map(talk.value, _tokens(bot))):
        if bot == "slack":
            print(files("agent.surfaces.bots.slack").joinpath("manifest.yaml").read_text("utf-8"))
        print(STEPS[bot])
    while True:
        for name in _tokens(bot):

            def valid(changed: Settings, name: str = name) -> None:
                if not getattr(changed, name):
                    raise BadInput(f"{variable_of(name)} is missing: {TOKENS[name]}")

            await talk.set(name, TOKENS[name], valid, secret=True)
        if await talk.works(slack_access if bot == "slack" else partial(discord_access, inviting=True)):
            return
