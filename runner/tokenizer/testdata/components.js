// Computes the expected values of components.json again: npm install tokenizers@0.23.2; node components.js
const { Tokenizer } = require("tokenizers");
const fs = require("fs");
const file = JSON.parse(fs.readFileSync("components.json"));
(async () => {
  for (const t of file.tests) {
    const config = { ...t.tokenizer };
    if (config.model === "wordpiece") config.model = file.wordpiece;
    const tok = Tokenizer.fromString(JSON.stringify(config));
    for (const c of t.cases || []) {
      c.sp = (await tok.encode(c.text, null, { addSpecialTokens: true })).getIds();
      c.raw = (await tok.encode(c.text, null, { addSpecialTokens: false })).getIds();
      c.dec = await tok.decode(c.sp, false);
      c.decskip = await tok.decode(c.sp, true);
    }
    for (const d of t.decode || []) d.text = await tok.decode(d.ids, false);
  }
  const text = JSON.stringify(file).replace(/\},\{"(name|text)"/g, '},\n{"$1"');
  fs.writeFileSync("components.json", text);
})();
