package tokenizer

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// addedToken is an entry of added_tokens.
type addedToken struct {
	ID         int    `json:"id"`
	Content    string `json:"content"`
	SingleWord bool   `json:"single_word"`
	LStrip     bool   `json:"lstrip"`
	RStrip     bool   `json:"rstrip"`
	Normalized bool   `json:"normalized"`
	Special    bool   `json:"special"`

	text string // what it decodes to: its content, normalized if it is matched in normalized text
}

// addedTokens holds the added tokens and finds them in text.
type addedTokens struct {
	byID       map[int]*addedToken
	byContent  map[string]*addedToken
	special    map[string]bool // by content
	raw        matcher         // matched in the text as it is
	normalized matcher         // matched after normalizing
}

// loadAdded decodes added_tokens and sets the size of the vocabulary.
func (p *pipeline) loadAdded(raw []byte) error {
	var list []addedToken
	if raw != nil {
		if err := json.Unmarshal(raw, &list); err != nil {
			return err
		}
	}
	v := p.model.vocabulary()
	p.size = len(v.toks)
	a := &p.added
	a.byID, a.byContent, a.special = map[int]*addedToken{}, map[string]*addedToken{}, map[string]bool{}
	for i := range list {
		t := &list[i]
		if t.ID < 0 || t.ID >= maxTokenID {
			return fmt.Errorf("%q has id %d, want 0 to %d", t.Content, t.ID, maxTokenID-1)
		}
		a.byID[t.ID] = t
		p.size = max(p.size, t.ID+1)
		if t.Content == "" {
			continue
		}
		a.byContent[t.Content] = t
		if t.Special {
			a.special[t.Content] = true
		}
	}
	for _, id := range a.sortedIDs() {
		t := a.byID[id]
		t.text = t.Content
		if t.Content == "" || a.byContent[t.Content] != t {
			continue
		}
		if !t.Normalized {
			a.raw.add(t.Content, t)
			continue
		}
		content := t.Content
		if p.norm != nil {
			var err error
			if content, err = p.norm.normalize(content); err != nil {
				return fmt.Errorf("%q: %w", t.Content, err)
			}
		}
		t.text = content
		a.normalized.add(content, t)
	}
	return nil
}

// segment is a part of the text: an added token, or text between them.
type segment struct {
	text  string
	tok   *addedToken
	start bool // it begins where the text begins
}

// trieNode is a node of a byte trie; children are kept in a small list since most nodes have one.
type trieNode struct {
	keys []byte
	next []int32
	tok  *addedToken
}

// matcher finds the leftmost longest added token. The zero value finds nothing.
type matcher struct {
	nodes []trieNode
	first [256]bool
}

func (m *matcher) add(s string, t *addedToken) {
	if s == "" {
		return
	}
	if len(m.nodes) == 0 {
		m.nodes = make([]trieNode, 1)
	}
	m.first[s[0]] = true
	at := int32(0)
	for i := range len(s) {
		n := m.child(at, s[i])
		if n < 0 {
			n = int32(len(m.nodes))
			m.nodes = append(m.nodes, trieNode{})
			m.nodes[at].keys = append(m.nodes[at].keys, s[i])
			m.nodes[at].next = append(m.nodes[at].next, n)
		}
		at = n
	}
	if m.nodes[at].tok == nil {
		m.nodes[at].tok = t
	}
}

func (m *matcher) child(at int32, c byte) int32 {
	n := &m.nodes[at]
	for i, k := range n.keys {
		if k == c {
			return n.next[i]
		}
	}
	return -1
}

// longest returns the longest token that s starts with, and its length.
func (m *matcher) longest(s string) (best *addedToken, n int) {
	at := int32(0)
	for i := range len(s) {
		if at = m.child(at, s[i]); at < 0 {
			break
		}
		if t := m.nodes[at].tok; t != nil {
			best, n = t, i+1
		}
	}
	return best, n
}

// cut splits s at the added tokens that it holds.
func (m *matcher) cut(s string) []segment {
	if s == "" {
		return nil
	}
	if len(m.nodes) == 0 {
		return []segment{{text: s, start: true}}
	}
	var out []segment
	done := 0
	for i := 0; i < len(s); {
		if !m.first[s[i]] {
			i++
			continue
		}
		t, n := m.longest(s[i:])
		if t == nil {
			i++
			continue
		}
		from, to := i, i+n
		i = to
		if t.SingleWord && touchesWord(s, from, to) {
			continue
		}
		if t.LStrip {
			from = max(done, len(strings.TrimRightFunc(s[:from], isSpaceRune)))
		}
		if t.RStrip {
			to = len(s) - len(strings.TrimLeftFunc(s[to:], isSpaceRune))
		}
		if from < done { // an earlier token took the white space that this one is made of
			continue
		}
		if from > done {
			out = append(out, segment{text: s[done:from], start: done == 0})
		}
		out = append(out, segment{text: s[from:to], tok: t, start: from == 0})
		done = to
	}
	if done < len(s) {
		out = append(out, segment{text: s[done:], start: done == 0})
	}
	return out
}

// touchesWord reports whether a word character is next to s[from:to].
func touchesWord(s string, from, to int) bool {
	before, n := utf8.DecodeLastRuneInString(s[:from])
	if n > 0 && isWordRune(before) {
		return true
	}
	after, n := utf8.DecodeRuneInString(s[to:])
	return n > 0 && isWordRune(after)
}
