// What OpenAI's client for Node makes of `hachi serve`: node client.mjs TASK, with HACHI_URL and HACHI_KEY set.
// Prints what it saw as one line of JSON; ../test_node.py says what that should be.
import OpenAI from "openai";

let sent = 0;
const counting = (url, options) => {
  sent += 1;
  return fetch(url, options);
};
const connect = (options = {}) =>
  new OpenAI({ baseURL: process.env.HACHI_URL, apiKey: process.env.HACHI_KEY, fetch: counting, ...options });
const client = connect();
const said = (content) => ({ model: "hachi", messages: [{ role: "user", content }] });
const piece = (chunk) => chunk.choices[0]?.delta?.content ?? "";

async function failed(call) {
  const before = sent;
  try {
    await call();
  } catch (error) {
    const { name } = error.constructor;
    const { status = null, code = null, type = null, param = null, message } = error;
    return { name, status, code, type, param, message, sent: sent - before };
  }
  return null;
}

const tasks = {
  async whole() {
    const answer = await client.chat.completions.create(said("I row on Fridays"));
    const models = [];
    for await (const model of client.models.list()) models.push(model.id);
    return { answer, models, one: (await client.models.retrieve("hachi")).id };
  },

  async stream() {
    const chunks = [];
    const options = { stream: true, stream_options: { include_usage: true } };
    for await (const chunk of await client.chat.completions.create({ ...said("when do I row?"), ...options }))
      chunks.push(chunk);
    return { chunks };
  },

  async helper() {
    let text = "";
    const stream = client.chat.completions.stream(said("when do I row?"));
    stream.on("content", (delta) => (text += delta));
    const { choices } = await stream.finalChatCompletion();
    return { text, final: choices[0].message.content };
  },

  async errors() {
    const stranger = connect({ apiKey: "hachi-nothing" });
    const cut = async () => {
      for await (const _ of await client.chat.completions.create({ ...said("tell"), stream: true }));
    };
    return {
      key: await failed(() => stranger.models.list()),
      wrong: await failed(() => client.chat.completions.create({ ...said("hello"), n: 2 })),
      empty: await failed(() => client.chat.completions.create({ model: "hachi", messages: [] })),
      nowhere: await failed(() => client.completions.create({ model: "hachi", prompt: "hello" })),
      model: await failed(() => client.chat.completions.create(said("hello"))),
      streamed: await failed(() => client.chat.completions.create({ ...said("hello"), stream: true })),
      cut: await failed(cut),
    };
  },

  async turns() {
    const parameters = { type: "object", properties: { town: { type: "string" } }, required: ["town"] };
    const weather = { name: "weather", description: "The weather of a town", parameters };
    const runner = client.chat.completions.runTools({
      ...said("how is Lyon?"),
      tools: [{ type: "function", function: { ...weather, function: () => "sunny", parse: JSON.parse } }],
    });
    let called = null;
    runner.on("functionToolCall", (call) => (called = call.name));
    const text = await runner.finalContent();
    const schema = { type: "json_schema", json_schema: { name: "town", schema: parameters } };
    const shaped = await client.chat.completions.create({ ...said("which town?"), response_format: schema });
    const messages = [{ role: "user", content: "Name a country" }];
    const edited = [];
    const named = { model: "hachi", metadata: { chat_id: "countries" } };
    for (let again = 0; again < 2; again += 1) {
      const made = await client.chat.completions.create({ ...named, messages });
      edited.push(made.choices[0].message.content);
    }
    messages.push({ role: "assistant", content: edited[1] }, { role: "user", content: "Its capital?" });
    const last = await client.chat.completions.create({ ...named, messages });
    edited.push(last.choices[0].message.content);
    const response = await client.responses.create({ model: "hachi", input: "I row" });
    return {
      tools: { called, text },
      shaped: JSON.parse(shaped.choices[0].message.content),
      edited,
      response: response.output_text,
    };
  },

  async patience() {
    let asked = 0;
    while (sent === asked) {
      await client.models.list();
      asked += 1;
    }
    return { asked, sent, impatient: await failed(() => connect({ maxRetries: 0 }).models.list()) };
  },

  async leave() {
    const stream = await client.chat.completions.create({ ...said("tell"), stream: true });
    for await (const chunk of stream) if (piece(chunk)) break;
    return { left: true };
  },
};

console.log(JSON.stringify(await tasks[process.argv[2]]()));
