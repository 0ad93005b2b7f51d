package inspect

import (
	"slices"

	"github.com/anepkg/anepkg/manifest"
)

var (
	metaKinds  = []manifest.Kind{manifest.Seed, manifest.ANEMLL}
	cmlKind    = []manifest.Kind{manifest.CoreMLLLM}
	modelKinds = []manifest.Kind{manifest.Seed, manifest.ANEMLL, manifest.CoreMLLLM}
	anyModel   = []manifest.Kind{manifest.Seed, manifest.ANEMLL, manifest.CoreMLLLM, manifest.SingleModel}
)

// Catalogue returns every rule, sorted by id.
func Catalogue() []Rule {
	return slices.Concat(pkgRules, cfgRules, milRules, wgtRules, tokRules, runRules)
}

const first = "0.1.0"

var pkgRules = []Rule{
	{ID: "PKG001", Title: "folder is no supported package", Since: first, Severity: Error, Check: checkKind, Doc: `The folder holds neither meta.yaml (ANEMLL and seed packages), nor model_config.json or one of CoreML-LLM's file sets, nor a single ML Program. Neural networks (.mlmodel, Espresso) and Core AI models (.aimodel) are named, and cannot be judged or run here.
Fix: name the folder that holds the package, or convert the source again as an ML Program.`},
	{ID: "PKG002", Title: "part is missing", Since: first, Severity: Error, For: modelKinds, Check: checkParts, Doc: `A model that the description file names, or that the numbering of the chunks needs, is not in the package. It was looked for as every reader does: the exact name, the other suffix (.mlmodelc or .mlpackage), the name without _lutN, the names made of prefix and LUT bits.
Fix: fetch the part, or correct the name.`},
	{ID: "PKG003", Title: "program cannot be read", Since: first, Severity: Error, For: anyModel, Check: checkReadable, Doc: `model.mil or model.mlmodel does not follow its format, so Core ML refuses the part ("Error in reading the MIL network"). Checks that need the part are skipped.
Fix: fetch the file again; if the source has the same bytes, compile or convert the part again.`},
	{ID: "PKG004", Title: "chunks are numbered wrongly", Since: first, Severity: Error, For: metaKinds, Check: checkChunkNumbers, Doc: `num_chunks and the numbers in the names _chunk_NNofMM must agree, each number once. Readers take the count from one of the two and then load too few or too many files (ANEMLL's chat.py: "Found 4 chunks but filename indicates 2").
Fix: correct num_chunks or remove the foreign file.`},
	{ID: "PKG005", Title: "model folder is incomplete", Since: first, Severity: Error, For: anyModel, Check: checkContainers, Doc: `A compiled model needs model.mil and coremldata.bin; loaders treat a folder without coremldata.bin as absent, and upload filters for small files have dropped it before (CoreML-LLM commit e5037f9). An .mlpackage needs Manifest.json and Data/com.apple.CoreML/model.mlmodel. metadata.json may be absent.
Fix: fetch the missing file.`},
	{ID: "PKG006", Title: "Git LFS pointer instead of the file", Since: first, Severity: Error, Check: checkPointers, Doc: `A clone without git-lfs leaves text files of about 130 bytes in place of weight.bin, coremldata.bin and tokenizer.json. Runtimes report "file corrupt". The finding names the true size that the pointer states.
Fix: git lfs pull in the clone, or fetch the package with anepkg fetch.`},
	{ID: "PKG007", Title: "web page instead of the file", Since: first, Severity: Error, Check: checkPages, Doc: `A download stored an error page (404, login, "Entry not found") under the file's name (CoreML-LLM commit 079795f).
Fix: download the file again from the resolve/ address, with a token when the repository is gated.`},
	{ID: "PKG008", Title: "file is empty or unfinished", Since: first, Severity: Error, Check: checkEmpty, Doc: `A file that a runtime reads has no bytes, or its name shows an interrupted download (.incomplete, .part, .crdownload).
Fix: fetch the file again.`},
	{ID: "PKG009", Title: "model that no runtime loads", Since: first, Severity: Note, Check: checkLeftovers, Doc: `Converters leave intermediate models behind (_FFN_chunk_, _prefill_chunk_, another LUT width). They cost space and downloads and can confuse readers that search by pattern.
Fix: delete them.`},
	{ID: "PKG010", Title: "part is there in both forms", Since: first, Severity: Note, Check: checkBothForms, Doc: `The same part is there as .mlmodelc and as .mlpackage. Readers take the .mlmodelc; nothing keeps the two equal.
Fix: ship one form.`},
	{ID: "PKG011", Title: "file name is wrong or unsafe", Since: first, Severity: Error, Check: checkNames, Doc: `A claimed name leaves the package folder (error), is there only as a .zip (error), or was found only by searching for a similar name (warning: other readers may not find it). The 0.3.4 form of ffn without _chunk_NNofMM is a note: every reader recovers.
Fix: write the name of the file that is there.`},
	{ID: "PKG012", Title: "compiled model was renamed", Since: first, Severity: Note, Check: checkRenamed, Doc: `generatedClassName in metadata.json is made from the name that the model was compiled under. Another folder name shows that it was renamed, perhaps to pass for another chunk.`},
	{ID: "PKG013", Title: "side file is missing or has the wrong size", Since: first, Severity: Error, For: cmlKind, Check: checkSideFiles, Doc: `CoreML-LLM's runtime maps embedding tables, scales and RoPE tables without checking their size: a short file is read past its end, a missing RoPE table silently becomes rows of zeros. The exact sizes follow from vocab_size, hidden_size, num_layers and per_layer_dim (coreml-llm.md 3.9).
Fix: fetch the file again, or correct model_config.json.`},
}

var cfgRules = []Rule{
	{ID: "CFG001", Title: "description file is not readable", Since: first, Severity: Error, Check: checkConfigParses, Doc: `meta.yaml must be YAML with the keys under model_info and model_info.parameters; model_config.json must be a JSON object. ANEMLL's readers stop with KeyError or missingField otherwise.
Fix: correct the syntax at the place shown; indent with spaces.`},
	{ID: "CFG002", Title: "key stands twice", Since: first, Severity: Warning, Check: checkDuplicateKeys, Doc: `Python's reader takes the last value, Swift's refuses the file.
Fix: remove one.`},
	{ID: "CFG003", Title: "value has the wrong type", Since: first, Severity: Warning, For: metaKinds, Needs: NeedsConfig, Check: checkTypes, Doc: `ANEMLL's Swift reader takes numbers by "as? Int": a quoted number or a float is silently dropped and a default counts (context 2048, batch 32, one chunk, 8 logits outputs). Its Python reader calls int() and takes it. A value that is no number for anybody is an error.
Fix: write plain numbers and true or false.`},
	{ID: "CFG004", Title: "none is written in another way", Since: first, Severity: Warning, For: metaKinds, Needs: NeedsConfig, Check: checkNone, Doc: `"none" is a text in meta.yaml. Null makes chat.py look for a file ..._lutNone. A version that YAML reads as a number is dropped by Swift readers.
Fix: write none; quote the version.`},
	{ID: "CFG005", Title: "comment block differs or tells private paths", Since: first, Severity: Note, For: metaKinds, Check: checkComments, Doc: `The generator appends its options as comments. No runtime reads them; a difference shows that the file was edited or the options did not take effect. model_path, output_dir and command_line tell paths of the converter's machine.`},
	{ID: "CFG010", Title: "context_length differs from the programs", Since: first, Severity: Error, For: modelKinds, Needs: NeedsPrograms | NeedsConfig, Check: checkContext, Doc: `Runtimes build the causal mask with context_length columns. The program takes exactly the last dimension of its causal_mask: "MultiArray shape (1x1x1x1024) does not match (1x1x1x512)" (Anemll#54).
Fix: write the program's number.`},
	{ID: "CFG011", Title: "batch_size differs from the programs", Since: first, Severity: Error, For: metaKinds, Needs: NeedsPrograms | NeedsConfig, Check: checkBatch, Doc: `Runtimes call prefill with batch_size tokens; the program takes exactly the second dimension of its hidden_states.
Fix: write the program's number.`},
	{ID: "CFG012", Title: "hidden_size differs from the programs", Since: first, Severity: Error, For: modelKinds, Needs: NeedsPrograms | NeedsConfig, Check: checkHidden, Doc: `The width of the hidden states that the chunks take.`},
	{ID: "CFG013", Title: "vocab_size differs from the programs", Since: first, Severity: Error, For: modelKinds, Needs: NeedsPrograms | NeedsConfig, Check: checkVocab, Doc: `The head's outputs together give one logit for each id. Runtimes place the ids of later outputs by vocab_size.`},
	{ID: "CFG014", Title: "num_layers differs from the programs", Since: first, Severity: Error, For: modelKinds, Needs: NeedsPrograms | NeedsConfig, Check: checkNumLayers, Doc: `The layers that the chunks hold, by com.anemll.layers, the names of their weights, or the cache slots that they write.`},
	{ID: "CFG015", Title: "split_lm_head differs from the head", Since: first, Severity: Error, For: metaKinds, Needs: NeedsPrograms | NeedsConfig, Check: checkSplit, Doc: `The number of outputs logits1 to logitsN. With too small a number chat.py never produces the tail of the vocabulary; Swift fails to allocate its buffers.`},
	{ID: "CFG016", Title: "lm_head_chunk_sizes differ from the head", Since: first, Severity: Error, For: metaKinds, Needs: NeedsConfig, Check: checkHeadSizes, Doc: `The widths of logits1 to logitsN, or of the parts of an argmax head: runtimes add them up to place ids. Llama's converter makes parts of floor(V/8) while the generator writes one more for the first ones: the outputs count.`},
	{ID: "CFG017", Title: "argmax_in_model differs from the head", Since: first, Severity: Error, For: metaKinds, Needs: NeedsPrograms | NeedsConfig, Check: checkArgmax, Doc: `With argmax_in_model the head gives argmax_idx and argmax_val instead of logits. Without vocab_size and lm_head_chunk_sizes chat.py guesses the offsets of the parts and gives wrong ids (warning).`},
	{ID: "CFG018", Title: "head's outputs have different widths", Since: first, Severity: Warning, For: metaKinds, Needs: NeedsPrograms, Check: checkUneven, Doc: `ANEMLL's Swift runtime computes the offset of a logits output as a multiple of its own width (InferenceManager 2474), which is wrong when the vocabulary does not divide evenly. Other runtimes add up the widths.`},
	{ID: "CFG019", Title: "head and embedding table differ", Since: first, Severity: Error, For: metaKinds, Needs: NeedsPrograms, Check: checkEmbeddingRows, Doc: `A model gives one logit for each row of its embedding table. Parts of two conversions show here. Llama's converter drops the last V%8 logits; the tokens then cannot be generated.`},
	{ID: "CFG020", Title: "states differ from the programs", Since: first, Severity: Error, For: metaKinds, Needs: NeedsPrograms | NeedsConfig, Check: checkClaimedStates, Doc: `meta.yaml's states (seed extension) lists name, shape, dtype and layers of every state. Runtimes that snapshot states read it.`},
	{ID: "CFG021", Title: "recurrent flags differ from the states", Since: first, Severity: Error, For: metaKinds, Needs: NeedsPrograms | NeedsConfig, Check: checkRecurrent, Doc: `A package with recurrent states must say recurrent_state, prefill_full_batches_only and prefill_last_token_output: every token is fed exactly once, padding is absorbed into the state, and the last token's logits must come from its only call.`},
	{ID: "CFG022", Title: "local cache has the wrong length", Since: first, Severity: Error, For: metaKinds, Needs: NeedsPrograms | NeedsConfig, Check: checkLocalCache, Doc: `The local cache spans the context while context <= window + 2 batches; beyond it is a block-shifting window of window + 2 batches (window + batch in the first version of the layout), and local_cache_length says so (seed format, States).`},
	{ID: "CFG023", Title: "layer_types is wrong", Since: first, Severity: Error, For: modelKinds, Needs: NeedsPrograms | NeedsConfig, Check: checkLayerTypes, Doc: `One entry for each layer, of a known type, and the type of the state that the layer writes in the program.`},
	{ID: "CFG024", Title: "LUT bits differ from the weights", Since: first, Severity: Warning, For: metaKinds, Needs: NeedsPrograms | NeedsConfig, Check: checkLUT, Doc: `lut_* only makes file names; nothing checks it against the weights. A mixed package names the narrowest width and says lut_ffn_mixed. lut_*_per_channel is the number of channels that share a table; 8 is the default.`},
	{ID: "CFG025", Title: "sliding_window differs from the local cache", Since: first, Severity: Error, For: metaKinds, Needs: NeedsPrograms | NeedsConfig, Check: checkWindow, Doc: `Runtimes switch to the rotate functions at sliding_window. The local cache's third dimension is the window. When the key is missing they take 512, which is wrong for Gemma 3 4B (1024) and for small windows; convert_monolith.sh 0.3.5 loses the key (warning). The batch must divide the window.`},
	{ID: "CFG026", Title: "per_layer_inputs or shared layers are wrong", Since: first, Severity: Error, For: metaKinds, Needs: NeedsPrograms | NeedsConfig, Check: checkPerLayerInputs, Doc: `Gemma 4 chunks take per_layer_inputs of the width that the embeddings model gives. kv_shared_layers maps a layer to an earlier one whose keys and values it reads.`},
	{ID: "CFG030", Title: "model_config.json is missing or incomplete", Since: first, Severity: Error, For: cmlKind, Check: checkModelConfig, Doc: `Every default of CoreML-LLM's reader is that of Gemma 4 E2B, and values of another type are silently defaulted: a list as eos_token_id becomes 1, an empty architecture selects Gemma's prompt format.`},
	{ID: "CFG031", Title: "sliding_window differs from the sliding mask", Since: first, Severity: Error, For: cmlKind, Needs: NeedsPrograms | NeedsConfig, Check: checkSlidingWindow, Doc: `The runtime makes sliding masks of sliding_window positions.`},
}

var milRules = []Rule{
	{ID: "MIL001", Title: "program is inconsistent", Since: first, Severity: Error, For: anyModel, Check: checkProgram, Doc: `Every value must be defined once and before its use, and state operations must name a state.`},
	{ID: "MIL002", Title: "states differ between functions or parts", Since: first, Severity: Error, For: modelKinds, Needs: NeedsPrograms, Check: checkStatesEqual, Doc: `One state object serves every function and, in ANEMLL and seed packages, every chunk: names, shapes and element types must be equal. Core ML fails at the first prediction otherwise.`},
	{ID: "MIL003", Title: "hidden size differs between parts", Since: first, Severity: Error, For: modelKinds, Needs: NeedsPrograms, Check: checkHiddenEqual, Doc: `The hidden states of one part go into the next. Parts of two conversions show here.`},
	{ID: "MIL004", Title: "context differs between functions or caches", Since: first, Severity: Error, For: modelKinds, Needs: NeedsPrograms, Check: checkContextEqual, Doc: `The causal masks of all functions and the full-length caches span the same positions. Mixed 2K and 8K chunks crash at the first step (CoreML-LLM b9c95f5). Without context_length and state_length in config.json ANEMLL's converters take a state of 256 or 512, whatever --context says.`},
	{ID: "MIL005", Title: "layer is missing or out of order", Since: first, Severity: Error, For: modelKinds, Needs: NeedsPrograms, Check: checkLayerRanges, Doc: `The chunks hold consecutive ranges of layers from 0 on, and each attention layer writes its own cache slot.`},
	{ID: "MIL006", Title: "chunk does not follow its contract", Since: first, Severity: Error, For: metaKinds, Needs: NeedsPrograms, Check: checkChunkContract, Doc: `infer takes hidden_states [1, 1, H], position_ids [1], causal_mask [1, 1, 1, ctx], current_pos [1]; prefill the same for batch_size tokens. The last chunk's prefill gives [1, 1, H], the others [1, B, H] (seed format, Decoder chunks).`},
	{ID: "MIL007", Title: "metadata.json differs from the program", Since: first, Severity: Error, For: anyModel, Needs: NeedsPrograms, Check: checkMetadata, Doc: `metadata.json repeats inputs, outputs, states and operation counts of the program. Tools and runtimes that read it believe the wrong numbers (HF sdpa/ of Gemma 4: 2048 in metadata.json, 8192 in the program).`},
	{ID: "MIL008", Title: "embeddings model does not follow its contract", Since: first, Severity: Error, For: metaKinds, Needs: NeedsPrograms, Check: checkEmbeddings, Doc: `It takes input_ids [1, 1] and [1, batch_size] and gives hidden_states. Other lengths fail at prediction.`},
	{ID: "MIL009", Title: "head does not follow its contract", Since: first, Severity: Error, For: metaKinds, Needs: NeedsPrograms, Check: checkHead, Doc: `It gives logits1 to logitsN without a gap, or argmax_idx and argmax_val.`},
	{ID: "MIL010", Title: "part was made for other numbers", Since: first, Severity: Error, For: metaKinds, Needs: NeedsPrograms, Check: checkAnemllMeta, Doc: `com.anemll.chunk_no, num_chunks, context_length, batch_size, vocab_size and lm_head_chunk_sizes are written into a model when it is converted. A difference shows a renamed or foreign part.`},
	{ID: "MIL011", Title: "chunks do not fit together", Since: first, Severity: Error, For: cmlKind, Needs: NeedsPrograms, Check: checkWiring, Doc: `In CoreML-LLM packages a chunk reads what earlier chunks give (per_layer_combined, kv13_*, kv14_*), with equal shapes, and only the last one gives the token.`},
	{ID: "MIL012", Title: "shapes of an op contradict each other", Since: first, Severity: Error, For: anyModel, Needs: NeedsPrograms, Check: checkShapes, Doc: `The verifier computes the shape of every result from the operands by the op's definition (broadcasting, matmul, conv, reshape, slices, gather, reductions, compressed weights, states) and compares it with the printed type. Core ML checks the same when it loads the program.
Fix: convert the part again; the program was edited or damaged.`},
	{ID: "MIL013", Title: "element types of an op contradict each other", Since: first, Severity: Error, For: anyModel, Needs: NeedsPrograms, Check: checkTypesOfOps, Doc: `Operands of one op must have the types that the op joins, and its result the type that they give. An fp32 update of an fp16 state is the known case: BNNS on macOS 26 refuses it ("Slice update: update data type must match", Anemll#39).
Fix: cast the operand, or convert the part again.`},
	{ID: "MIL014", Title: "opset or specification version is too old", Since: first, Severity: Error, For: anyModel, Needs: NeedsPrograms, Check: checkOpsets, Doc: `A function may use only ops of its opset (states and slice_update came with ios18), and a model only opsets of its specification version (9 has ios18). Core ML refuses the program otherwise.
Fix: convert with a newer minimum_deployment_target.`},
	{ID: "MIL015", Title: "argument of an op is wrong", Since: first, Severity: Error, For: anyModel, Needs: NeedsPrograms, Check: checkArguments, Doc: `A required argument is missing, an argument has a name that no opset gives the op, or a constant argument lies outside its range (an axis beyond the rank, a permutation with a repeat).
Fix: convert the part again; the program was edited or damaged.`},
	{ID: "MIL016", Title: "op is not known", Since: first, Severity: Warning, For: anyModel, Needs: NeedsPrograms, Check: checkUnknownOps, Doc: `No opset up to ios18 has an op of this name (mil-op-signatures of coremltools). The program is damaged, or of a producer with private ops.
Fix: check the spelling, or run a newer anepkg.`},
	{ID: "MIL017", Title: "constants that nothing reads", Since: first, Severity: Note, For: anyModel, Needs: NeedsPrograms, Check: checkUnusedConstants, Doc: `A constant that no op and no result reads costs space and load time. The prefill function of ANEMLL's Llama leaves out the last layer's MLP on purpose; its constants are then absent, not unused.
Fix: convert again with dead-code elimination.`},
	{ID: "MIL018", Title: "state is declared and never read", Since: first, Severity: Warning, For: anyModel, Needs: NeedsPrograms, Check: checkUnreadStates, Doc: `Every declared state must be read by every function, or the conversion for the Neural Engine fails (seed format, Neural Engine notes). Chunks read one element of the states that they do not use.
Fix: read one element of the state in each function.`},
	{ID: "MIL019", Title: "slice of a state is a result", Since: first, Severity: Warning, For: modelKinds, Needs: NeedsPrograms, Check: checkStateOutputs, Doc: `A result that is nothing but a slice of a state stops Core ML's compiler with std::bad_cast (CoreML-LLM, E4B multimodal build).
Fix: give a computed value, or slice in the part that reads it.`},
	{ID: "MIL020", Title: "input has flexible shapes", Since: first, Severity: Note, For: modelKinds, Needs: NeedsPrograms, Check: checkFlexible, Doc: `Dimensions that are decided at run time keep ops off the Neural Engine and cost a compilation of seconds for every new shape (coremltools#1909, CoreML-LLM). The embeddings model is the one part that is made with enumerated shapes.
Fix: convert one function for each shape.`},
	{ID: "MIL021", Title: "range of shapes in a multifunction model", Since: first, Severity: Warning, For: anyModel, Needs: NeedsPrograms, Check: checkMultiRange, Doc: `Models with several functions and range dimensions are reported to fail at load time; enumerated and fixed shapes work.
Fix: use fixed or enumerated shapes.`},
}

var wgtRules = []Rule{
	{ID: "WGT001", Title: "weight file has the wrong size", Since: first, Severity: Error, For: anyModel, Needs: NeedsPrograms, Check: checkWeightSize, Doc: `The size of weight.bin follows exactly from the program: the last blob's offset, its 64-byte record and its data. A smaller file was cut short (Core ML: error -14); a larger one is of another conversion. The true size that a Git LFS pointer states is compared in the same way, so no download is needed.`},
	{ID: "WGT002", Title: "blob differs from the program", Since: first, Severity: Error, For: anyModel, Needs: NeedsPrograms | NeedsWeights, Check: checkRecords, Doc: `Each blob has a record with a magic number, element type, size and data offset. They must be what the program says at that offset.`},
	{ID: "WGT003", Title: "blobs overlap", Since: first, Severity: Error, For: anyModel, Needs: NeedsPrograms, Check: checkOverlap, Doc: `Two constants of the program share bytes without being the same blob.`},
	{ID: "WGT004", Title: "weight file is missing or outside", Since: first, Severity: Error, For: anyModel, Needs: NeedsPrograms, Check: checkWeightPaths, Doc: `The program names its weight files relative to @model_path. A path that leaves the model folder is refused.`},
	{ID: "WGT005", Title: "true size of a pointer matches the program", Since: first, Severity: Note, For: anyModel, Needs: NeedsPrograms, Check: checkPointerSizes, Doc: `The weight file itself is not there, but its Git LFS pointer states exactly the size that the program needs: the published file belongs to this program.`},
}

var tokRules = []Rule{
	{ID: "TOK001", Title: "tokenizer file is missing", Since: first, Severity: Error, For: modelKinds, Check: checkTokenizerPresent, Doc: `tokenizer.json and tokenizer_config.json are needed by every runtime; CoreML-LLM keeps them in hf_model/, with config.json.`},
	{ID: "TOK002", Title: "tokenizer file does not parse", Since: first, Severity: Error, Check: checkTokenizerParses, Doc: `A JSON file of the tokenizer is broken at the place shown.`},
	{ID: "TOK003", Title: "token ids exceed the vocabulary", Since: first, Severity: Error, For: modelKinds, Check: checkTokenIDs, Doc: `The highest id of tokenizer.json must be below the rows of the embedding table; look-ups are not checked by runtimes. A vocabulary larger than the tokenizer is normal (Qwen pads it).`},
	{ID: "TOK004", Title: "no usable end-of-text token", Since: first, Severity: Error, For: modelKinds, Check: checkStopIDs, Doc: `Stop ids come from config.json, generation_config.json, tokenizer_config.json and the chat end tokens. One at least must exist, and each must lie inside the vocabulary.`},
	{ID: "TOK005", Title: "named token is not in the vocabulary", Since: first, Severity: Warning, For: modelKinds, Check: checkSpecialTokens, Doc: `bos, eos, pad or unk in tokenizer_config.json names a text that tokenizer.json lacks.`},
	{ID: "TOK006", Title: "no chat template", Since: first, Severity: Note, For: modelKinds, Check: checkTemplate, Doc: `Without a template runtimes fall back to built-in formats. ANEMLL's Swift reader reads only tokenizer_config.json, not chat_template.jinja.`},
	{ID: "TOK007", Title: "config.json is a stub", Since: first, Severity: Note, For: metaKinds, Needs: NeedsConfig, Check: checkStubConfig, Doc: `ANEMLL's prepare_hf.sh overwrites config.json with a stub that says llama or gemma. Never take sizes, eos or the architecture from it.`},
}

var runRules = []Rule{
	{ID: "RUN001", Title: "oldest system that loads the package", Since: first, Severity: Note, For: anyModel, Needs: NeedsPrograms, Check: checkSystem, Doc: `States and multifunction models need specification 9: macOS 15, iOS 18. A target that is older is an error ("compiler major version 9 is newer than 8", Anemll#14).`},
	{ID: "RUN002", Title: "states of different shapes", Since: first, Severity: Note, For: metaKinds, Needs: NeedsPrograms, Check: checkStateShapes, Doc: `M1 and A14 cannot load models whose states differ in shape (ANEMLL 0.3.5 release notes).`},
	{ID: "RUN003", Title: "state layout fails on the Neural Engine", Since: first, Severity: Warning, For: modelKinds, Needs: NeedsPrograms, Check: checkStateAlign, Doc: `No state may have a last axis of 3 elements (seed format, Neural Engine notes).`},
	{ID: "RUN004", Title: "linear quantization on the Neural Engine", Since: first, Severity: Warning, For: modelKinds, Needs: NeedsPrograms, Check: checkLinearWeights, Doc: `Measured on an M5 Max with macOS 26: int8 weights compute garbage on the Neural Engine (cosine 0.75), int4 blocks do not compile; on the GPU both are right. CoreML-LLM ships int8 packages and reports them as working, so this is a warning.`},
	{ID: "RUN005", Title: "weight file exceeds an iPhone's limit", Since: first, Severity: Note, For: modelKinds, Needs: NeedsPrograms, Check: checkWeightLimit, Doc: `Weight files above 1 GiB fail on iPhones (docs/troubleshooting.md of ANEMLL).`},
	{ID: "RUN006", Title: "stock ANEMLL corrupts the states", Since: first, Severity: Note, For: metaKinds, Needs: NeedsPrograms | NeedsConfig, Check: checkRecurrentRuntime, Doc: `ANEMLL's runtimes run the last prompt token twice. That is harmless for a full-length KV cache and wrong for recurrent states and shifting windows.`},
	{ID: "RUN007", Title: "prefill_rotate is not causal", Since: first, Severity: Note, For: metaKinds, Needs: NeedsPrograms, Check: checkRotatePrefill, Doc: `Measured on the real converter's programs: in prefill_rotate the whole batch is shifted into the local window first and every token sees all of it. infer_rotate, one token at a time, is exact.`},
	{ID: "RUN008", Title: "split rotate files do not run in chat.py", Since: first, Severity: Note, For: metaKinds, Check: checkSplitRotate, Doc: `chat.py's search for chunks also finds _rot files, and it expects a function prefill in them.`},
	{ID: "RUN009", Title: "context exceeds the Neural Engine's limit", Since: first, Severity: Warning, For: metaKinds, Needs: NeedsPrograms, Check: checkPositionLimit, Doc: `RoPE tables have two rows for each position and the Neural Engine takes at most 16384 in a dimension, so a context is at most 8192.`},
	{ID: "RUN010", Title: "prefill cannot be batched as it should", Since: first, Severity: Warning, For: metaKinds, Needs: NeedsPrograms | NeedsConfig, Check: checkPrefillPath, Doc: `update_mask_prefill and the input update_mask belong together; without prefill_dynamic_slice and update_mask_prefill chat.py feeds the prompt token by token.`},
	{ID: "RUN011", Title: "final norm in every chunk", Since: first, Severity: Warning, For: metaKinds, Needs: NeedsPrograms, Check: checkFinalNorm, Doc: `ANEMLL 0.3.4 applied the final norm in each chunk; the text then repeats itself (Anemll#36). Such a chunk has one layer_norm more than its layers need.`},
}
