package tokenizer_test

import (
	"strings"
	"testing"

	"github.com/anepkg/anepkg/runner/tokenizer"
)

var benchModels = []string{"qwen3", "gemma3", "llama3_1", "gptoss", "deepseek_v3", "llama2"}

// benchText is prose, code, and other scripts, about 100 kB.
func benchText() string {
	const part = "The quick brown fox jumps over the lazy dog, isn't it? It's 12:30 on 3 May 2024; \"nothing\" costs $4,999.99.\n" +
		"func (s *scanner) hex4() (rune, error) {\n\tif s.i+4 > len(s.b) {\n\t\treturn 0, s.errorf(\"no end\")\n\t}\n}\n\n" +
		"Ein Wörterbuch für Übersetzer: naïve Café-Gäste. Привет, мир! 今天天气很好，我们去公园吧。 こんにちは世界 👍🏽\n"
	return strings.Repeat(part, 100_000/len(part))
}

// englishText is prose of about 100 kB.
func englishText() string {
	const part = "It was late in the afternoon when the two travellers reached the village, and the innkeeper, who hadn't expected anyone " +
		"at that time of the year, came out with a lantern in his hand. \"You'll want supper,\" he said, \"and a room for the night.\" They did; " +
		"they had walked twenty-three miles since morning, and the road over the hills isn't kind to tired feet.\n\n"
	return strings.Repeat(part, 100_000/len(part))
}

func BenchmarkEncodeEnglish(b *testing.B) {
	text := englishText()
	for _, name := range benchModels {
		b.Run(name, func(b *testing.B) {
			tok := load(b, modelFile(b, name))
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := tok.Encode(text, true); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkLoad(b *testing.B) {
	for _, name := range benchModels {
		b.Run(name, func(b *testing.B) {
			data := modelFile(b, name)
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := tokenizer.Load(data); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkEncode(b *testing.B) {
	text := benchText()
	for _, name := range benchModels {
		b.Run(name, func(b *testing.B) {
			tok := load(b, modelFile(b, name))
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := tok.Encode(text, true); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkDecode(b *testing.B) {
	text := benchText()
	for _, name := range benchModels {
		b.Run(name, func(b *testing.B) {
			tok := load(b, modelFile(b, name))
			ids, err := tok.Encode(text, false)
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				tok.Decode(ids, true)
			}
		})
	}
}
