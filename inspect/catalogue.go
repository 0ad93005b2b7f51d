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
	{ID: "PKG005", Title: "model folder is incomplete", Since: first, Severity: Error, For: anyModel, Targets: allSystems, Check: checkContainers, Doc: `A compiled model needs model.mil and coremldata.bin; loaders treat a folder without coremldata.bin as absent, and upload filters for small files have dropped it before (CoreML-LLM commit e5037f9). An .mlpackage needs Manifest.json and Data/com.apple.CoreML/model.mlmodel. metadata.json may be absent.
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
	{ID: "PKG012", Title: "compiled model was renamed", Since: first, Severity: Note, Check: checkRenamed, Doc: `generatedClassName in metadata.json is made from the name that the model was compiled under. Another folder name shows that it was renamed, perhaps to pass for another chunk.
Fix: compile the model again under the name that it has now, or make sure that it is the part that the name says.`},
	{ID: "PKG013", Title: "side file is missing or has the wrong size", Since: first, Severity: Error, For: cmlKind, Check: checkSideFiles, Doc: `CoreML-LLM's runtime maps embedding tables, scales and RoPE tables without checking their size: a short file is read past its end, a missing RoPE table silently becomes rows of zeros. The exact sizes follow from vocab_size, hidden_size, num_layers and per_layer_dim (coreml-llm.md 3.9). For Qwen3.5 they follow from the programs. Rows of a RoPE table are as wide as the chunks' inputs.
Fix: fetch the file again, or correct model_config.json.`},
	{ID: "PKG014", Title: "side file holds wrong values", Since: first, Severity: Error, For: cmlKind, Needs: NeedsWeights, Targets: onCoreMLLLM, Check: checkSideValues, Doc: `Scales of the embedding tables must be positive and finite, the RoPE tables two-dimensional fp16 whose first row has the angle 0 (cos 1, sin 0), and per_layer_norm_weight.bin float32 (coreml-llm.md A8 to A10). The runtime maps the files without a look. Tables of nothing but zeros and fp16 numbers that are not finite are of a broken conversion or download. head_meta.json has the vocabulary and width of the programs (warning).
Fix: make the file again with the converter.`},
	{ID: "PKG015", Title: "file names collide", Since: first, Severity: Error, Check: checkCollisions, Doc: `Two paths differ only in upper and lower case, or in the Unicode form of their letters (NFC, NFD). The file systems of macOS and Windows hold one of them only, and a download silently overwrites the other.
Fix: rename or delete one of them.`},
	{ID: "PKG016", Title: "model path has unusual characters", Since: first, Severity: Warning, Check: checkOddPaths, Doc: `Core ML's compiler and several loaders handle paths as C strings and URLs: characters outside ASCII, and those that Windows refuses, have made them fail.
Fix: use letters, digits, - and _.`},
	{ID: "PKG017", Title: "files of file managers and download tools", Since: first, Severity: Note, Check: checkJunk, Doc: `.DS_Store, ._* (AppleDouble), Thumbs.db, .etag and download metadata belong to no package. They cost downloads, and tell about the machine that made the package.
Fix: delete them before publishing.`},
	{ID: "PKG018", Title: "symbolic link cannot be used", Since: first, Severity: Warning, Check: checkLinks, Doc: `A link that leads to nothing, in a circle, or into a folder that it lies in makes copying and uploading fail; one that leads out of the package is left behind (note), and what lies in such a folder is not looked at. Links into the blobs of huggingface_hub's cache are right.
Fix: replace the link by the file.`},
	{ID: "PKG019", Title: "the two forms of a part differ", Since: first, Severity: Warning, For: anyModel, Needs: NeedsPrograms, Check: checkAlternatives, Doc: `A part is there as .mlmodelc and as .mlpackage, and the two have different functions, shapes or ops. Which one a runtime takes then decides what it computes.
Fix: delete the one that is not meant.`},
	{ID: "PKG020", Title: "files of two layouts", Since: first, Severity: Warning, For: cmlKind, Check: checkStaleChunks, Doc: `CoreML-LLM picks its loader by the files that are there: model wins over chunk_1, the three-chunk set over the four-chunk set, and half of a three-chunk set is ignored (coreml-llm.md A2, A19, A24).
Fix: delete the files of the layout that is not meant.`},
	{ID: "PKG021", Title: "file cannot be opened", Since: first, Severity: Error, Check: checkAccess, Doc: `A file that a runtime reads is there and cannot be opened: another user owns it (sideloading tools and containers write as root; coreml-llm.md A25), or the disk fails. Owner and write permission themselves are not judged: they differ between the machine that checks and the one that runs.
Fix: chmod -R u+rwX on the folder, or chown it to the user of the runtime.`},
	{ID: "PKG022", Title: "weight files are stored twice", Since: first, Severity: Note, For: anyModel, Needs: NeedsWeights, Check: checkTwins, Doc: `Two weight files have the same bytes, as chunk1 and prefill_chunk1 of CoreML-LLM have: hard links save the room (682 MB for Gemma 4 E2B; coreml-llm.md A27). A chunk and its prefill chunk of equal size and with different weights are of two conversions (warning).
Fix: hard-link the equal files; convert different ones from one checkpoint.`},
	{ID: "PKG023", Title: "file differs from its hash", Since: first, Severity: Error, Needs: NeedsWeights, Check: checkBlobNames, Doc: `huggingface_hub's cache names large files by their SHA-256, and the package consists of links to them. Another content is a damaged download or a disk fault, which the size does not show.
Fix: anepkg fetch --repair, or delete the blob and fetch again.`},
	{ID: "PKG024", Title: "file differs from the bundle's manifest", Since: first, Severity: Error, Needs: NeedsWeights, Check: checkBundle, Doc: `An .anemllpkg, the form in which ANEMLL Chat hands packages over, lists every file with its size and SHA-256 (anemll.md section 7). A file that is absent or another one was lost or changed after packing; the app refuses the bundle.
Fix: hand the package over again, or pack it anew.`},
	{ID: "PKG025", Title: "Manifest.json lists items that are not there", Since: first, Severity: Error, For: anyModel, Check: checkManifestItems, Doc: `Manifest.json of an .mlpackage gives each item, the model specification and the weights folder, an identifier and a path. Core ML opens the package by this list: a path that does not exist stops it. Two items with one path, or a second model specification that nothing names, are left by tools that edit packages (warning).
Fix: write the list anew with coremltools, or fetch Manifest.json from the source of the package.`},
}

var cfgRules = []Rule{
	{ID: "CFG001", Title: "description file is not readable", Since: first, Severity: Error, Check: checkConfigParses, Doc: `meta.yaml must be YAML with the keys under model_info and model_info.parameters; model_config.json must be a JSON object. ANEMLL's readers stop with KeyError or missingField otherwise. A second document in meta.yaml and text in UTF-16 stop Python's reader, NaN and Infinity stop the readers of JSON other than Python's; a byte order mark in JSON is a warning.
Fix: correct the syntax at the place shown; indent with spaces.`},
	{ID: "CFG002", Title: "key stands twice", Since: first, Severity: Warning, Check: checkDuplicateKeys, Doc: `Python's reader takes the last value, Swift's refuses the file.
Fix: remove one.`},
	{ID: "CFG003", Title: "value has the wrong type", Since: first, Severity: Warning, For: metaKinds, Needs: NeedsConfig, Targets: onSwift, Check: checkTypes, Doc: `ANEMLL's Swift reader takes numbers by "as? Int": a quoted number or a float is silently dropped and a default counts (context 2048, batch 32, one chunk, 8 logits outputs). Its Python reader calls int() and takes it. A value that is no number for anybody is an error.
Fix: write plain numbers and true or false.`},
	{ID: "CFG004", Title: "none is written in another way", Since: first, Severity: Warning, For: metaKinds, Needs: NeedsConfig, Targets: onPython, Check: checkNone, Doc: `"none" is a text in meta.yaml. Null makes chat.py look for a file ..._lutNone. A version that YAML reads as a number is dropped by Swift readers.
Fix: write none; quote the version.`},
	{ID: "CFG005", Title: "comment block differs or tells private paths", Since: first, Severity: Note, For: metaKinds, Check: checkComments, Doc: `The generator appends its options as comments. No runtime reads them; a difference shows that the file was edited or the options did not take effect. model_path, output_dir and command_line tell paths of the converter's machine.
Fix: delete the comment block, or the lines with paths, before publishing.`},
	{ID: "CFG010", Title: "context_length differs from the programs", Since: first, Severity: Error, For: modelKinds, Needs: NeedsPrograms | NeedsConfig, Check: checkContext, Doc: `Runtimes build the causal mask with context_length columns. The program takes exactly the last dimension of its causal_mask: "MultiArray shape (1x1x1x1024) does not match (1x1x1x512)" (Anemll#54).
Fix: write the program's number.`},
	{ID: "CFG011", Title: "batch_size differs from the programs", Since: first, Severity: Error, For: metaKinds, Needs: NeedsPrograms | NeedsConfig, Check: checkBatch, Doc: `Runtimes call prefill with batch_size tokens; the program takes exactly the second dimension of its hidden_states.
Fix: write the program's number.`},
	{ID: "CFG012", Title: "hidden_size differs from the programs", Since: first, Severity: Error, For: modelKinds, Needs: NeedsPrograms | NeedsConfig, Check: checkHidden, Doc: `The width of the hidden states that the chunks take.
Fix: write the programs' number, or use the parts that were made for it.`},
	{ID: "CFG013", Title: "vocab_size differs from the programs", Since: first, Severity: Error, For: modelKinds, Needs: NeedsPrograms | NeedsConfig, Check: checkVocab, Doc: `The head's outputs together give one logit for each id. Runtimes place the ids of later outputs by vocab_size.
Fix: write the sum of the head's outputs.`},
	{ID: "CFG014", Title: "num_layers differs from the programs", Since: first, Severity: Error, For: modelKinds, Needs: NeedsPrograms | NeedsConfig, Check: checkNumLayers, Doc: `The layers that the chunks hold, by com.anemll.layers, the names of their weights, or the cache slots that they write.
Fix: write the programs' number; when it is too small, a chunk is missing.`},
	{ID: "CFG015", Title: "split_lm_head differs from the head", Since: first, Severity: Error, For: metaKinds, Needs: NeedsPrograms | NeedsConfig, Check: checkSplit, Doc: `The number of outputs logits1 to logitsN. With too small a number chat.py never produces the tail of the vocabulary; Swift fails to allocate its buffers.
Fix: write the number of the head's outputs.`},
	{ID: "CFG016", Title: "lm_head_chunk_sizes differ from the head", Since: first, Severity: Error, For: metaKinds, Needs: NeedsConfig, Check: checkHeadSizes, Doc: `The widths of logits1 to logitsN, or of the parts of an argmax head: runtimes add them up to place ids. Llama's converter makes parts of floor(V/8) while the generator writes one more for the first ones: the outputs count.
Fix: write the widths of the outputs in their order.`},
	{ID: "CFG017", Title: "argmax_in_model differs from the head", Since: first, Severity: Error, For: metaKinds, Needs: NeedsPrograms | NeedsConfig, Targets: onANEMLL, Check: checkArgmax, Doc: `With argmax_in_model the head gives argmax_idx and argmax_val instead of logits. Without vocab_size and lm_head_chunk_sizes chat.py guesses the offsets of the parts and gives wrong ids (warning).
Fix: write what the head gives; with argmax also vocab_size and lm_head_chunk_sizes.`},
	{ID: "CFG018", Title: "head's outputs have different widths", Since: first, Severity: Warning, For: metaKinds, Needs: NeedsPrograms, Targets: onSwift, Check: checkUneven, Doc: `ANEMLL's Swift runtime computes the offset of a logits output as a multiple of its own width (InferenceManager 2474), which is wrong when the vocabulary does not divide evenly. Other runtimes add up the widths.
Fix: split the head into a number of parts that divides the vocabulary.`},
	{ID: "CFG019", Title: "head and embedding table differ", Since: first, Severity: Error, For: metaKinds, Needs: NeedsPrograms, Check: checkEmbeddingRows, Doc: `A model gives one logit for each row of its embedding table. Parts of two conversions show here. Llama's converter drops the last V%8 logits; the tokens then cannot be generated.
Fix: use the embeddings and the head of one conversion.`},
	{ID: "CFG020", Title: "states differ from the programs", Since: first, Severity: Error, For: metaKinds, Needs: NeedsPrograms | NeedsConfig, Check: checkClaimedStates, Doc: `meta.yaml's states (seed extension) lists name, shape, dtype and layers of every state. Runtimes that snapshot states read it.
Fix: write the states as "anepkg states" lists them.`},
	{ID: "CFG021", Title: "flags differ from the states", Since: first, Severity: Error, For: metaKinds, Needs: NeedsPrograms | NeedsConfig, Check: checkRecurrent, Doc: `A package with recurrent states must say recurrent_state, prefill_full_batches_only and prefill_last_token_output: every token is fed exactly once, padding is absorbed into the state, and the last token's logits must come from its only call. A local cache that is a block-shifting window cannot be rewound either, and needs prefill_last_token_output (seed format, States).
Fix: write the three keys as true.`},
	{ID: "CFG022", Title: "local cache has the wrong length", Since: first, Severity: Error, For: metaKinds, Needs: NeedsPrograms | NeedsConfig, Check: checkLocalCache, Doc: `The local cache spans the context while context <= window + 2 batches; beyond it is a block-shifting window of window + 2 batches (window + batch in the first version of the layout), and local_cache_length says so (seed format, States).
Fix: write the third dimension of the local cache as local_cache_length; convert again when the cache itself has another length.`},
	{ID: "CFG023", Title: "layer_types is wrong", Since: first, Severity: Error, For: modelKinds, Needs: NeedsPrograms | NeedsConfig, Check: checkLayerTypes, Doc: `One entry for each layer, of a known type, and the type of the state that the layer writes in the program.
Fix: write one type for each layer, as "anepkg layers" lists them.`},
	{ID: "CFG024", Title: "LUT bits differ from the weights", Since: first, Severity: Warning, For: metaKinds, Needs: NeedsPrograms | NeedsConfig, Check: checkLUT, Doc: `lut_* and the _lutN in names only find files; nothing checks them against the weights. A mixed package names the narrowest width and says lut_ffn_mixed. lut_*_per_channel is the number of channels that share a table; 8 is the default.
Fix: write the bits that the weights have.`},
	{ID: "CFG025", Title: "sliding_window differs from the local cache", Since: first, Severity: Error, For: metaKinds, Needs: NeedsPrograms | NeedsConfig, Targets: onANEMLL, Check: checkWindow, Doc: `Runtimes switch to the rotate functions at sliding_window. The local cache's third dimension is the window. When the key is missing they take 512, which is wrong for Gemma 3 4B (1024) and for small windows; convert_monolith.sh 0.3.5 loses the key (warning). The batch must divide the window.
Fix: write the third dimension of the local cache as sliding_window.`},
	{ID: "CFG026", Title: "per_layer_inputs or shared layers are wrong", Since: first, Severity: Error, For: metaKinds, Needs: NeedsPrograms | NeedsConfig, Check: checkPerLayerInputs, Doc: `Gemma 4 chunks take per_layer_inputs of the width that the embeddings model gives. kv_shared_layers maps a layer to an earlier one whose keys and values it reads. Both have the same type, and the earlier one keeps a cache of its own; Gemma 4 takes the last one that does (transformers; warning). The layers that are left out are those whose caches the programs write.
Fix: write the width that the chunks take, and layers that own a cache.`},
	{ID: "CFG030", Title: "model_config.json is missing or incomplete", Since: first, Severity: Error, For: cmlKind, Targets: onCoreMLLLM, Check: checkModelConfig, Doc: `Every default of CoreML-LLM's reader is that of Gemma 4 E2B, and values of another type are silently defaulted: a list as eos_token_id becomes 1, an empty architecture selects Gemma's prompt format.
Fix: copy model_config.json from the source of the package, and write the missing keys.`},
	{ID: "CFG031", Title: "sliding_window differs from the sliding mask", Since: first, Severity: Error, For: cmlKind, Needs: NeedsPrograms | NeedsConfig, Check: checkSlidingWindow, Doc: `The runtime makes sliding masks of sliding_window positions.
Fix: write the number of columns of the sliding mask.`},
	{ID: "CFG032", Title: "scale does not follow from the sizes", Since: first, Severity: Warning, For: cmlKind, Needs: NeedsConfig, Check: checkScaleFactors, Doc: `Gemma multiplies embeddings by sqrt(hidden_size), per-layer ones by sqrt(per_layer_dim), and the projection by 1/sqrt(hidden_size). The runtime takes the numbers of model_config.json (coreml-llm.md A14).
Fix: write the number that the finding names.`},
	{ID: "CFG033", Title: "lfm2_conv_l_pad differs from the program", Since: first, Severity: Warning, For: cmlKind, Needs: NeedsPrograms | NeedsConfig, Targets: onCoreMLLLM, Check: checkConvPad, Doc: `The length of LFM2's convolution state. The runtime's default is 16, shipped packages have 3 (coreml-llm.md A28).
Fix: write the last dimension of conv_state_in.`},
	{ID: "CFG034", Title: "a runtime's default differs from the programs", Since: first, Severity: Warning, For: metaKinds, Needs: NeedsPrograms | NeedsConfig, Targets: runtimes, Check: checkRuntimesAgree, Doc: `When a key is absent, or of a type that the reader drops, ANEMLL's runtimes take a default of their own (context 512 in chat.py, 2048 in Swift; batch 64 and 32; 8 outputs of the head; anemll.md 1.3). The finding names the runtime that then works with a wrong number.
Fix: write the key as a plain number.`},
	{ID: "CFG035", Title: "sliding_window of a model without one", Since: first, Severity: Warning, For: metaKinds, Needs: NeedsPrograms | NeedsConfig, Targets: onSwift, Check: checkForeignWindow, Doc: `From position sliding_window on ANEMLL's runtimes call the rotate functions; Swift stops with sliding_window_requires_rotate where there are none (anemll.md 4.3). Only Gemma packages have a local cache.
Fix: delete the line.`},
	{ID: "CFG036", Title: "name tells another context", Since: first, Severity: Note, For: modelKinds, Needs: NeedsPrograms, Check: checkNamedContext, Doc: `ANEMLL's scripts name packages -ctxN, and people choose downloads by it. Folder, meta.yaml and program of one package have been seen with three numbers; the program's counts.
Fix: name the package after the program's number.`},
}

var milRules = []Rule{
	{ID: "MIL001", Title: "program is inconsistent", Since: first, Severity: Error, For: anyModel, Check: checkProgram, Doc: `Every value must be defined once and before its use, and state operations must name a state.
Fix: compile or convert the part again; the program was edited or damaged.`},
	{ID: "MIL002", Title: "states differ between functions or parts", Since: first, Severity: Error, For: modelKinds, Needs: NeedsPrograms, Check: checkStatesEqual, Doc: `One state object serves every function and, in ANEMLL and seed packages, every chunk: names, shapes and element types must be equal. Core ML fails at the first prediction otherwise.
Fix: use parts of one conversion.`},
	{ID: "MIL003", Title: "hidden size differs between parts", Since: first, Severity: Error, For: modelKinds, Needs: NeedsPrograms, Check: checkHiddenEqual, Doc: `The hidden states of one part go into the next. Parts of two conversions show here.
Fix: use parts of one conversion.`},
	{ID: "MIL004", Title: "context differs between functions or caches", Since: first, Severity: Error, For: modelKinds, Needs: NeedsPrograms, Check: checkContextEqual, Doc: `The causal masks of all functions and the full-length caches span the same positions. Mixed 2K and 8K chunks crash at the first step (CoreML-LLM b9c95f5). Without context_length and state_length in config.json ANEMLL's converters take a state of 256 or 512, whatever --context says.
Fix: convert all parts for one context length, with context_length and state_length in config.json.`},
	{ID: "MIL005", Title: "layer is missing or out of order", Since: first, Severity: Error, For: modelKinds, Needs: NeedsPrograms, Check: checkLayerRanges, Doc: `The chunks hold consecutive ranges of layers from 0 on, and each attention layer writes its own cache slot.
Fix: put the chunks of one conversion into their order.`},
	{ID: "MIL006", Title: "chunk does not follow its contract", Since: first, Severity: Error, For: metaKinds, Needs: NeedsPrograms, Targets: onSwift, Check: checkChunkContract, Doc: `infer takes hidden_states [1, 1, H], position_ids [1], causal_mask [1, 1, 1, ctx], current_pos [1]; prefill the same for batch_size tokens. The last chunk's prefill gives [1, 1, H], the others [1, B, H] (seed format, Decoder chunks).
Fix: convert the chunk again with the converter of the package's format.`},
	{ID: "MIL007", Title: "metadata.json differs from the program", Since: first, Severity: Error, For: anyModel, Needs: NeedsPrograms, Check: checkMetadata, Doc: `metadata.json repeats inputs, outputs, states and operation counts of the program. Tools and runtimes that read it believe the wrong numbers (HF sdpa/ of Gemma 4: 2048 in metadata.json, 8192 in the program).
Fix: compile the model again, which renews metadata.json; the program counts.`},
	{ID: "MIL008", Title: "embeddings model does not follow its contract", Since: first, Severity: Error, For: metaKinds, Needs: NeedsPrograms, Check: checkEmbeddings, Doc: `It takes input_ids [1, 1] and [1, batch_size] and gives hidden_states. Other lengths fail at prediction.
Fix: convert the embeddings model again for the package's batch size.`},
	{ID: "MIL009", Title: "head does not follow its contract", Since: first, Severity: Error, For: metaKinds, Needs: NeedsPrograms, Check: checkHead, Doc: `It gives logits1 to logitsN without a gap, or argmax_idx and argmax_val.
Fix: convert the head again with the converter of the package's format.`},
	{ID: "MIL010", Title: "part was made for other numbers", Since: first, Severity: Error, For: metaKinds, Needs: NeedsPrograms, Check: checkAnemllMeta, Doc: `com.anemll.chunk_no, num_chunks, context_length, batch_size, vocab_size and lm_head_chunk_sizes are written into a model when it is converted. A difference shows a renamed or foreign part.
Fix: fetch the part of this package; the one that is there was made for another.`},
	{ID: "MIL011", Title: "chunks do not fit together", Since: first, Severity: Error, For: cmlKind, Needs: NeedsPrograms, Check: checkWiring, Doc: `In CoreML-LLM packages a chunk reads what earlier chunks give (per_layer_combined, kv13_*, kv14_*), with equal shapes, and only the last one gives the token. All chunks keep their caches in one way, as inputs and results or as states.
Fix: put the chunks of one conversion into their order.`},
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
	{ID: "MIL018", Title: "state is declared and never read", Since: first, Severity: Warning, For: anyModel, Needs: NeedsPrograms, Targets: onEngine, Check: checkUnreadStates, Doc: `Every declared state must be read by every function, or the conversion for the Neural Engine fails (seed format, Neural Engine notes). Chunks read one element of the states that they do not use.
Fix: read one element of the state in each function.`},
	{ID: "MIL019", Title: "slice of a state is a result", Since: first, Severity: Note, For: modelKinds, Needs: NeedsPrograms, Check: checkStateOutputs, Doc: `A result that is nothing but a slice of a state stopped Core ML's compiler with std::bad_cast in one build (CoreML-LLM, E4B multimodal); E2B packages of the same form are shipped, so this is a note.
Fix: give a computed value, or slice in the part that reads it.`},
	{ID: "MIL020", Title: "input has flexible shapes", Since: first, Severity: Note, For: modelKinds, Needs: NeedsPrograms, Check: checkFlexible, Doc: `Dimensions that are decided at run time keep ops off the Neural Engine and cost a compilation of seconds for every new shape (coremltools#1909, CoreML-LLM). The embeddings model is the one part that is made with enumerated shapes.
Fix: convert one function for each shape.`},
	{ID: "MIL021", Title: "range of shapes in a multifunction model", Since: first, Severity: Note, For: anyModel, Needs: NeedsPrograms, Check: checkMultiRange, Doc: `Models with several functions and range dimensions are reported to fail at load time; enumerated and fixed shapes work.
Fix: use fixed or enumerated shapes.`},
	{ID: "MIL022", Title: "chunks have different batch functions", Since: first, Severity: Warning, For: cmlKind, Needs: NeedsPrograms, Targets: onCoreMLLLM, Check: checkPrefillSets, Doc: `CoreML-LLM uses prefill_bT and verify_qK only where every chunk has them; with a part of them missing it falls back to one token at a time, or stops. It looks for sizes of 4, 8, 16 (Gemma) or 8, 16, 32, 64 (others) and ignores the rest (coreml-llm.md L8, A18, A20).
Fix: convert all chunks with the same batch sizes.`},
	{ID: "MIL023", Title: "prefill chunk gives other layers", Since: first, Severity: Error, For: cmlKind, Needs: NeedsPrograms, Check: checkPrefillOutputs, Doc: `prefill_chunkN gives K0, V0 to Kn, Vn: one pair for each layer of chunkN that has a cache slot of its own, the two producers of the shared caches (kv13, kv14) left out, each with a row for every token of the call. Another count stops the runtime with predictionFailed (coreml-llm.md 3.3, A15, A17).
Fix: convert decode and prefill chunks from one checkpoint.`},
	{ID: "MIL024", Title: "verify functions do not fit the runtime", Since: first, Severity: Error, For: cmlKind, Needs: NeedsPrograms, Targets: onCoreMLLLM, Check: checkVerifySet, Doc: `Speculative decoding reads new_K_sliding and its kin; the schema of build_eagle3_verify.py (K_sliding_new, kv13_k_out) makes the runtime crash. Every chunk must take the same number of drafts. The runtime copies 7/1 and 5/2 slots of one head, which only Gemma 4 E2B has (warning; coreml-llm.md A18).
Fix: convert with build_verify_chunks.py, and decode other models token by token.`},
	{ID: "MIL025", Title: "cache has the wrong shape", Since: first, Severity: Error, For: cmlKind, Needs: NeedsPrograms, Check: checkCaches, Doc: `Caches of CoreML-LLM's chunks, inputs or states, hold as many positions as the masks over them have columns, come back with the shape that they go in with, have a slot for each layer that owns one, and as states a key and a value for each, in fp16 (coreml-llm.md A4, A15, A16, A21).
Fix: use chunks of one conversion, made for one context length.`},
	{ID: "MIL026", Title: "coremldata.bin differs from the program", Since: first, Severity: Error, For: anyModel, Needs: NeedsPrograms, Check: checkCoreMLData, Doc: `Core ML reads the kind of a compiled model, its functions, inputs, outputs and states from coremldata.bin before it looks at the program (mil.md C.3). A file that is cut, holds other content, or belongs to another part stops the load, or makes Core ML refuse the inputs that the program takes.
Fix: fetch the file again from the source of the part's program, or compile the model again.`},
}

var wgtRules = []Rule{
	{ID: "WGT001", Title: "weight file has the wrong size", Since: first, Severity: Error, For: anyModel, Needs: NeedsPrograms, Check: checkWeightSize, Doc: `The size of weight.bin follows exactly from the program: the last blob's offset, its 64-byte record and its data. A smaller file was cut short (Core ML: error -14); a larger one is of another conversion. The true size that a Git LFS pointer states is compared in the same way, so no download is needed.
Fix: fetch the file again; when the source has the same size, convert the part again.`},
	{ID: "WGT002", Title: "blob differs from the program", Since: first, Severity: Error, For: anyModel, Needs: NeedsPrograms | NeedsWeights, Check: checkRecords, Doc: `Each blob has a record with a magic number, element type, size and data offset. They must be what the program says at that offset.
Fix: fetch the file again; when the source has the same bytes, convert the part again.`},
	{ID: "WGT003", Title: "blobs overlap", Since: first, Severity: Error, For: anyModel, Needs: NeedsPrograms, Check: checkOverlap, Doc: `Two constants of the program share bytes without being the same blob.
Fix: convert the part again; the program was edited or damaged.`},
	{ID: "WGT004", Title: "weight file is missing or outside", Since: first, Severity: Error, For: anyModel, Needs: NeedsPrograms, Check: checkWeightPaths, Doc: `The program names its weight files relative to @model_path. A path that leaves the model folder is refused.
Fix: fetch the weight file, or convert the part again when the path leaves the folder.`},
	{ID: "WGT005", Title: "true size of a pointer matches the program", Since: first, Severity: Note, For: anyModel, Needs: NeedsPrograms, Check: checkPointerSizes, Doc: `The weight file itself is not there, but its Git LFS pointer states exactly the size that the program needs: the published file belongs to this program.
Fix: fetch the content: git lfs pull, or anepkg fetch.`},
	{ID: "WGT006", Title: "blob is not aligned", Since: first, Severity: Error, For: anyModel, Needs: NeedsPrograms, Check: checkAlignment, Doc: `Records of a weight file lie at multiples of 64 after the 64-byte header (MIL Blob Storage, coremltools StorageFormat.hpp). Another offset shows an edited program.
Fix: convert the part again.`},
	{ID: "WGT007", Title: "bytes that no constant reads", Since: first, Severity: Note, For: anyModel, Needs: NeedsPrograms, Check: checkGaps, Doc: `Blobs follow each other without gaps. A gap holds weights of layers or functions that the program no longer has.
Fix: convert again to save the room.`},
	{ID: "WGT008", Title: "weights are not finite", Since: first, Severity: Error, For: anyModel, Needs: NeedsPrograms | NeedsWeights, Check: checkFinite, Doc: `A NaN, or an infinity in a table or scale, spreads to every result. Dense constants may hold -inf, as masks do; +inf there is a warning. Dividing by zero while quantizing an all-zero tensor is a known source (coreml-llm.md B15).
Fix: convert the part again.`},
	{ID: "WGT009", Title: "weight is all zero", Since: first, Severity: Warning, For: anyModel, Needs: NeedsPrograms | NeedsWeights, Check: checkZeros, Doc: `A matrix, table or set of scales that is zero throughout was probably never loaded from the checkpoint. Vectors of zeros are common as biases and are left out.
Fix: convert again and look for missing tensors.`},
	{ID: "WGT010", Title: "some scales are zero", Since: first, Severity: Note, For: anyModel, Needs: NeedsPrograms | NeedsWeights, Check: checkZeroScales, Doc: `A scale of zero makes all elements of its row or block zero, which is right only where the row was zero before. All-zero rows of a position table give one (measured-defects.md 10).
Fix: leave such tensors out of the quantization.`},
	{ID: "WGT011", Title: "tables or scales are subnormal", Since: first, Severity: Note, For: modelKinds, Needs: NeedsPrograms | NeedsWeights, Targets: onEngine, Check: checkSubnormal, Doc: `The Neural Engine flushes fp16 numbers below 6.1e-5 to zero (seed format, Neural Engine notes). A palette or scale made mostly of them is lost there; the GPU keeps it.
Fix: scale the weight up and its result down.`},
	{ID: "WGT012", Title: "palettes repeat their entries", Since: first, Severity: Note, For: anyModel, Needs: NeedsPrograms | NeedsWeights, Check: checkPalettes, Doc: `A table with at most half as many different entries as it has room for stores the same values in a bit less. Weights with few distinct values, or groups smaller than the table, give them.
Fix: use fewer bits or larger groups.`},
	{ID: "WGT013", Title: "functions do not share their weights", Since: first, Severity: Warning, For: modelKinds, Needs: NeedsPrograms, Check: checkSharing, Doc: `infer and prefill of one chunk hold the same weights; save_multifunction stores equal ones once. When less than half is shared the file is about twice as large as needed. ANEMLL's Llama leaves the last MLP out of prefill, which is no finding (measured-defects.md 4).
Fix: combine the functions with save_multifunction.`},
	{ID: "WGT014", Title: "convolution has taps of zeros", Since: first, Severity: Warning, For: modelKinds, Needs: NeedsPrograms | NeedsWeights, Check: checkTaps, Doc: `A causal convolution that was padded to a longer kernel (LFM2: 16 taps for 3) has columns that are zero in every channel. In fp16 such packages repeated one word (coreml-llm.md B43).
Fix: convert with the kernel's own length.`},
}

var tokRules = []Rule{
	{ID: "TOK001", Title: "tokenizer file is missing", Since: first, Severity: Error, For: modelKinds, Targets: onCoreMLLLM, Check: checkTokenizerPresent, Doc: `tokenizer.json and tokenizer_config.json are needed by every runtime; CoreML-LLM keeps them in hf_model/, with config.json.
Fix: copy the tokenizer's files from the model's checkpoint.`},
	{ID: "TOK002", Title: "tokenizer file does not parse", Since: first, Severity: Error, Check: checkTokenizerParses, Doc: `A JSON file of the tokenizer is broken at the place shown. A byte order mark and NaN count: only some readers of JSON take them (NaN outside tokenizer.json is a warning).
Fix: copy the file from the model's checkpoint.`},
	{ID: "TOK003", Title: "token ids exceed the vocabulary", Since: first, Severity: Error, For: modelKinds, Check: checkTokenIDs, Doc: `The highest id of tokenizer.json must be below the rows of the embedding table; look-ups are not checked by runtimes. A vocabulary larger than the tokenizer is normal (Qwen pads it).
Fix: use the tokenizer of the model's checkpoint.`},
	{ID: "TOK004", Title: "no usable end-of-text token", Since: first, Severity: Error, For: modelKinds, Check: checkStopIDs, Doc: `Stop ids come from config.json, generation_config.json, tokenizer_config.json and the chat end tokens. One at least must exist, and each must lie inside the vocabulary.
Fix: write eos_token_id into generation_config.json.`},
	{ID: "TOK005", Title: "named token is not in the vocabulary", Since: first, Severity: Warning, For: modelKinds, Check: checkSpecialTokens, Doc: `bos, eos, pad or unk in tokenizer_config.json names a text that tokenizer.json lacks.
Fix: write a token that tokenizer.json has.`},
	{ID: "TOK006", Title: "no chat template", Since: first, Severity: Note, For: modelKinds, Check: checkTemplate, Doc: `Without a template runtimes fall back to built-in formats. ANEMLL's Swift reader reads only tokenizer_config.json, not chat_template.jinja.
Fix: copy chat_template.jinja from the model's checkpoint and put its text into tokenizer_config.json too; base models need none.`},
	{ID: "TOK007", Title: "config.json is a stub", Since: first, Severity: Note, For: metaKinds, Needs: NeedsConfig, Check: checkStubConfig, Doc: `ANEMLL's prepare_hf.sh overwrites config.json with a stub that says llama or gemma. Never take sizes, eos or the architecture from it.
Fix: copy config.json from the model's checkpoint.`},
	{ID: "TOK008", Title: "chat template does not parse", Since: first, Severity: Warning, For: modelKinds, Check: checkTemplateParses, Doc: `The template is not valid Jinja, as transformers reads it (block trimming, loop controls, namespaces).
Fix: copy the template from the model's checkpoint.`},
	{ID: "TOK009", Title: "chat template does not render", Since: first, Severity: Warning, For: modelKinds, Check: checkTemplateRenders, Doc: `The template raises an error on a conversation of one plain question, or leaves the question out of the prompt.
Fix: copy the template from the model's checkpoint.`},
	{ID: "TOK010", Title: "template's end token is no stop id", Since: first, Severity: Warning, For: modelKinds, Targets: onCoreMLLLMPython, Check: checkTemplateEnd, Doc: `What the template writes after an answer is what the model was trained to end with. When no file names it as a stop id, generations run on (a note when it is one of the end tokens that most runtimes know by name).
Fix: add the id to eos_token_id in generation_config.json.`},
	{ID: "TOK011", Title: "files name different end tokens", Since: first, Severity: Note, For: modelKinds, Check: checkStopSources, Doc: `config.json, generation_config.json and tokenizer_config.json have no end token in common. Runtimes read different ones of them (anemll.md 4; config.json of published ANEMLL packages is a stub).
Fix: list all end tokens in generation_config.json.`},
	{ID: "TOK012", Title: "tokenizer class that Swift refuses", Since: first, Severity: Warning, For: modelKinds, Targets: onSwiftReaders, Check: checkTokenizerClass, Doc: `transformers 5 writes TokenizersBackend as tokenizer_class; swift-transformers stops at it (CoreML-LLM build_lfm2_bundle.py).
Fix: write the class of the checkpoint's tokenizer.`},
	{ID: "TOK013", Title: "added tokens contradict each other", Since: first, Severity: Error, For: modelKinds, Check: checkAddedTokens, Doc: `Two added tokens have one id, or one token two ids.
Fix: copy tokenizer.json from the model's checkpoint.`},
	{ID: "TOK014", Title: "a runtime does not stop at the end token", Since: first, Severity: Note, For: modelKinds, Targets: runtimes, Check: checkRuntimesStop, Doc: `Each runtime takes its stop ids from other places: chat.py from the tokenizer's eos_token and three fixed names, ANEMLL's Swift from config.json and six names, CoreML-LLM one number of model_config.json. The finding names the one that misses eos_token.
Fix: name the id where that runtime reads it.`},
	{ID: "TOK015", Title: "a runtime does not read the chat template", Since: first, Severity: Note, For: modelKinds, Targets: runtimes, Check: checkRuntimesTemplate, Doc: `ANEMLL's Swift reader takes the template from tokenizer_config.json only, and falls back to a built-in format when it lies in chat_template.jinja (anemll.md 4.3).
Fix: copy the template into tokenizer_config.json.`},
}

var runRules = []Rule{
	{ID: "RUN001", Title: "oldest system that loads the package", Since: first, Severity: Note, For: anyModel, Needs: NeedsPrograms, Targets: allSystems, Check: checkSystem, Doc: `States and multifunction models need specification 9: macOS 15, iOS 18. A target that is older is an error ("compiler major version 9 is newer than 8", Anemll#14).
Fix: nothing to do, unless you need an older system: then convert with an older minimum_deployment_target.`},
	{ID: "RUN002", Title: "states of different shapes", Since: first, Severity: Note, For: metaKinds, Needs: NeedsPrograms, Targets: onOldChips, Check: checkStateShapes, Doc: `M1 and A14 cannot load models whose states differ in shape (ANEMLL 0.3.5 release notes).
Fix: convert with --single-cache for these chips.`},
	{ID: "RUN003", Title: "state layout fails on the Neural Engine", Since: first, Severity: Warning, For: modelKinds, Needs: NeedsPrograms, Targets: onEngine, Check: checkStateAlign, Doc: `No state may have a last axis of 3 elements (seed format, Neural Engine notes).
Fix: store the state with its axes exchanged.`},
	{ID: "RUN004", Title: "linear quantization on the Neural Engine", Since: first, Severity: Warning, For: modelKinds, Needs: NeedsPrograms, Targets: onEngine, Check: checkLinearWeights, Doc: `Measured on an M5 Max with macOS 26: int8 weights compute garbage on the Neural Engine (cosine 0.75), int4 blocks do not compile; on the GPU both are right. CoreML-LLM ships int8 packages and reports them as working, so this is a warning.
Fix: run on the GPU, or convert with palettes.`},
	{ID: "RUN005", Title: "weight file exceeds an iPhone's limit", Since: first, Severity: Note, For: modelKinds, Needs: NeedsPrograms, Targets: iPhones, Check: checkWeightLimit, Doc: `Weight files above 1 GiB fail on iPhones (docs/troubleshooting.md of ANEMLL); chunks above 950 MiB, where ANEMLL splits, have failed to compile for the Neural Engine (coremltools#2758).
Fix: convert into more chunks.`},
	{ID: "RUN006", Title: "stock ANEMLL corrupts the states", Since: first, Severity: Note, For: metaKinds, Needs: NeedsPrograms | NeedsConfig, Targets: onANEMLL, Check: checkRecurrentRuntime, Doc: `ANEMLL's runtimes run the last prompt token twice. That is harmless for a full-length KV cache and wrong for recurrent states and shifting windows.
Fix: use a runtime that feeds every token once.`},
	{ID: "RUN007", Title: "prefill_rotate is not causal", Since: first, Severity: Note, For: metaKinds, Needs: NeedsPrograms, Check: checkRotatePrefill, Doc: `Measured on the real converter's programs: in prefill_rotate the whole batch is shifted into the local window first and every token sees all of it. infer_rotate, one token at a time, is exact.
Fix: feed tokens one at a time from the window on.`},
	{ID: "RUN008", Title: "split rotate files do not run in chat.py", Since: first, Severity: Note, For: metaKinds, Targets: onPython, Check: checkSplitRotate, Doc: `chat.py's search for chunks also finds _rot files, and it expects a function prefill in them.
Fix: put the functions of both files into one, or use the Swift runtime.`},
	{ID: "RUN009", Title: "context exceeds the Neural Engine's limit", Since: first, Severity: Warning, For: metaKinds, Needs: NeedsPrograms, Targets: onEngine, Check: checkPositionLimit, Doc: `RoPE tables have two rows for each position and the Neural Engine takes at most 16384 in a dimension, so a context is at most 8192.
Fix: convert with a context of at most 8192.`},
	{ID: "RUN010", Title: "prefill cannot be batched as it should", Since: first, Severity: Warning, For: metaKinds, Needs: NeedsPrograms | NeedsConfig, Targets: onANEMLL, Check: checkPrefillPath, Doc: `update_mask_prefill and the input update_mask belong together; without prefill_dynamic_slice and update_mask_prefill chat.py feeds the prompt token by token.
Fix: write the flag that matches the inputs of prefill.`},
	{ID: "RUN011", Title: "final norm in every chunk", Since: first, Severity: Warning, For: metaKinds, Needs: NeedsPrograms, Check: checkFinalNorm, Doc: `ANEMLL 0.3.4 applied the final norm in each chunk; the text then repeats itself (Anemll#36). Such a chunk has one layer_norm more than its layers need.
Fix: convert again with ANEMLL 0.3.5.`},
	{ID: "RUN012", Title: "sliding layers see what they must not", Since: first, Severity: Warning, For: modelKinds, Needs: NeedsPrograms, Targets: onCoreMLLLM, Check: checkWindowed, Doc: `Measured on the real converters' programs: CoreML-LLM's verify_qK mask is not causal among drafts, batched prefill of its stateful chunks leaks later tokens once the window is full and the batch divides it, and models with one causal mask attend past the window (measured-defects.md 7, 8, 12).
Fix: feed tokens one at a time from the window on.`},
	{ID: "RUN013", Title: "position tables are compressed", Since: first, Severity: Warning, For: modelKinds, Needs: NeedsPrograms, Check: checkRoPEQuantized, Doc: `CoreML-LLM's weight compression also takes the RoPE tables inside the graph: errors of 0.10 with 4 bits, 0.005 with 8 (measured-defects.md 10).
Fix: leave the tables out of the compression.`},
	{ID: "RUN014", Title: "ops run on the CPU inside a chunk", Since: first, Severity: Note, For: modelKinds, Needs: NeedsPrograms, Check: checkOffEngine, Doc: `Scatter, gather_nd, loops, sorting and the like have no Neural Engine form; each costs a copy to the CPU and back (coreml-llm.md B17).
Fix: write the computation with slices, matmul or masks, or move it into the embeddings model or the head.`},
	{ID: "RUN015", Title: "gather_nd with computed indices", Since: first, Severity: Warning, For: anyModel, Needs: NeedsPrograms, Targets: onEngine, Check: checkDynamicGather, Doc: `Returns zeros on the Neural Engine (CoreML-LLM PROBE_GEMMA4_VISION_ANE).
Fix: use gather or gather_along_axis.`},
	{ID: "RUN016", Title: "topk over too many elements", Since: first, Severity: Warning, For: anyModel, Needs: NeedsPrograms, Targets: onEngine, Check: checkTopK, Doc: `Indices of topk wrap at 65536 on the Neural Engine (CoreML-LLM MTP_PATH_C).
Fix: use reduce_argmax, or topk over parts.`},
	{ID: "RUN017", Title: "activations are quantized", Since: first, Severity: Warning, For: anyModel, Needs: NeedsPrograms, Targets: iPhones, Check: checkActivationQuant, Doc: `quantize and dequantize at run time make the Neural Engine's compiler fail on iPhones and gain nothing on Macs (CoreML-LLM EXPERIMENTS).
Fix: convert without activation quantization.`},
	{ID: "RUN018", Title: "compression that does not load", Since: first, Severity: Warning, For: anyModel, Needs: NeedsPrograms, Targets: onEngine, Check: checkMixedCompression, Doc: `Tables along two axes, a palette followed by constexpr_blockwise_shift_scale, and palettes of integers fail with error -14 or leave the Neural Engine (coreml-llm.md B9, B10; coremltools 9.0 makes the second).
Fix: palettize with groups along the output channels only.`},
	{ID: "RUN019", Title: "weights are sparse and quantized", Since: first, Severity: Note, For: anyModel, Needs: NeedsPrograms, Check: checkSparsePalette, Doc: `Measured by CoreML-LLM: 124 % larger than the palette alone, cosine 0.449.
Fix: use the palette alone.`},
	{ID: "RUN020", Title: "palettes of three bits or fewer", Since: first, Severity: Note, For: modelKinds, Needs: NeedsPrograms, Check: checkNarrowPalette, Doc: `Post-training palettes of 3 bits and fewer are reported to give gibberish (coreml-llm.md B14). On the Neural Engine 3 bits cost the memory of 4 (seed format).
Fix: use 4 or 6 bits.`},
	{ID: "RUN021", Title: "a table for each output channel", Since: first, Severity: Note, For: modelKinds, Needs: NeedsPrograms, Check: checkGroupSpeed, Doc: `Measured on Qwen3-0.6B with 4 bits: 41 tokens/s with one table for each channel, 92 with groups of 8; groups of 2 cost a quarter (seed format, Neural Engine notes).
Fix: palettize in groups of 8 channels where speed counts.`},
	{ID: "RUN022", Title: "embedding table is compressed", Since: first, Severity: Warning, For: modelKinds, Needs: NeedsPrograms, Check: checkTableMemory, Doc: `A palettized look-up table is expanded when the model loads (Gemma 4 E2B with 4 bits: 87 s and 16.7 GB), a plain fp16 table stays mapped (instant, 40 MB) (seed format, Neural Engine notes). Tables below 64 MiB are not reported.
Fix: leave the table in fp16.`},
	{ID: "RUN023", Title: "epsilon vanishes on the Neural Engine", Since: first, Severity: Note, For: anyModel, Needs: NeedsPrograms, Targets: onEngine, Check: checkSmallEpsilon, Doc: `An epsilon below 6.1e-5 is an fp16 subnormal, which the Neural Engine flushes: rsqrt of zero is then infinite (coreml-llm.md B23, B24).
Fix: use layer_norm over [x, -x], or a larger epsilon.`},
	{ID: "RUN024", Title: "exact gelu", Since: first, Severity: Note, For: modelKinds, Needs: NeedsPrograms, Check: checkGelu, Doc: `The exact form is reported to be refused by the Neural Engine's private interface, the tanh form to work. Second-hand (Orion); Core ML itself takes both.
Fix: use the tanh form where the model allows it.`},
	{ID: "RUN025", Title: "arithmetic in fp32", Since: first, Severity: Note, For: modelKinds, Needs: NeedsPrograms, Check: checkSingleTypes, Doc: `Ops with fp32 results run on the CPU (coreml-llm.md B32). Inputs and outputs in fp32 with a cast are no finding.
Fix: convert with compute_precision FLOAT16.`},
	{ID: "RUN026", Title: "attention scores exceed fast memory", Since: first, Severity: Note, For: modelKinds, Needs: NeedsPrograms, Check: checkScores, Doc: `heads x queries x context x 2 bytes beyond 32 MiB is about 30 % slower (coreml-llm.md B29, second-hand).
Fix: use smaller prefill batches or a shorter context.`},
	{ID: "RUN027", Title: "large depthwise convolution", Since: first, Severity: Note, For: modelKinds, Needs: NeedsPrograms, Check: checkDepthwise, Doc: `Convolutions with as many groups as channels, 1024 and more, run on the CPU (CoreML-LLM LFM2_CONVERSION_FINDINGS).
Fix: write it as a sum of shifted products.`},
	{ID: "RUN028", Title: "fused attention has a fixed scale", Since: first, Severity: Warning, For: modelKinds, Needs: NeedsPrograms, Check: checkScaledAttention, Doc: `scaled_dot_product_attention divides by sqrt(d) and takes no other scale, which is wrong for Gemma 4 (coreml-llm.md B26).
Fix: multiply the query by sqrt(d) first.`},
	{ID: "RUN029", Title: "function has very many ops", Since: first, Severity: Note, For: modelKinds, Needs: NeedsPrograms, Check: checkManyOps, Doc: `Chunks of up to 1058 ops are known to run on the Neural Engine; above 1500 nobody has reported success (coreml-llm.md B30).
Fix: convert into more chunks.`},
	{ID: "RUN030", Title: "package has very many functions", Since: first, Severity: Note, For: modelKinds, Needs: NeedsPrograms, Check: checkCompiles, Doc: `Each function is compiled on its own; about 100 compilations in one process are reported to be the limit (coreml-llm.md B31).
Fix: leave out the functions that nobody calls.`},
	{ID: "RUN031", Title: "token is chosen inside the program", Since: first, Severity: Note, For: modelKinds, Needs: NeedsPrograms, Check: checkHeadArgmax, Doc: `reduce_argmax over fp16 logits breaks ties differently on different chips, and leaves no way to sample or to penalise repeats (coreml-llm.md B22).
Fix: convert with logits as the head's result when sampling matters.`},
	{ID: "RUN032", Title: "constant overflows in fp16", Since: first, Severity: Note, For: anyModel, Needs: NeedsPrograms, Check: checkCast, Doc: `An fp32 constant such as -1e9 becomes -inf when it is cast to fp16. In a mask this is what is meant, unless a row is masked as a whole: softmax of such a row is NaN.
Fix: use -65504 or -1e4 in masks.`},
	{ID: "RUN033", Title: "rows of a state are padded", Since: first, Severity: Note, For: modelKinds, Needs: NeedsPrograms, Check: checkRowWidth, Doc: `The Neural Engine pads the last axis to 64 bytes; states whose rows are no multiple of it have failed or fallen back (coremltools#2631, #2553). Shipping packages with such rows exist, so this is a note.
Fix: choose a last axis that is a multiple of 32, when a part falls back to the CPU.`},
	{ID: "RUN034", Title: "cache is shifted by concat", Since: first, Severity: Note, For: modelKinds, Needs: NeedsPrograms, Check: checkShiftedCache, Doc: `Writing a state as a concat of its own slice and new rows is reported to fail with error -14 for Qwen3 with tied embeddings, and to work for Gemma (coreml-llm.md B7).
Fix: write the rows with slice_update.`},
	{ID: "RUN035", Title: "function has three or more states", Since: first, Severity: Note, For: modelKinds, Needs: NeedsPrograms, Targets: iPhones, Check: checkStateCount, Doc: `CoreML-LLM reports failures at prediction with three states (MLSTATE_PATTERN). Seed packages with three states are measured to work on Macs, and are left out.
Fix: join states of equal type.`},
	{ID: "RUN036", Title: "batches, states and functions together", Since: first, Severity: Note, For: modelKinds, Needs: NeedsPrograms, Targets: iPhones, Check: checkMultiBatchStates, Doc: `A multifunction model whose batch function has two states is reported to fail on iPhones (ANECCompile FAILED 11), as a model of its own to work (coreml-llm.md B5).
Fix: ship the batch function as a model of its own.`},
	{ID: "RUN037", Title: "full-attention layers rotate too many frequencies", Since: first, Severity: Note, For: cmlKind, Needs: NeedsWeights, Check: checkFullRoPE, Doc: `Gemma 4's full-attention layers rotate the first quarter of their frequencies (transformers, "proportional"); CoreML-LLM's tables rotate all (measured-defects.md 9).
Fix: set the other angles to zero.`},
	{ID: "RUN038", Title: "gains of norms lose precision", Since: first, Severity: Note, For: cmlKind, Needs: NeedsPrograms, Check: checkStoredGains, Doc: `EmbeddingGemma's converter stores the gains of post-block norms as (1+w)/16-1 in fp16: up to 0.3 % of error in a gain (measured-defects.md 11).
Fix: nothing to do; compare embeddings with a tolerance.`},
	{ID: "RUN039", Title: "whole model was compiled on a Mac", Since: first, Severity: Note, For: modelKinds, Needs: NeedsPrograms, Targets: iPhones, Check: checkWholeCompiled, Doc: `A single .mlmodelc with more than 30 layers is reported to be refused by iPhones ("must re-compile the E5 bundle"; coreml-llm.md B42). Chunks work, and so does an .mlpackage.
Fix: ship the .mlpackage.`},
	{ID: "RUN040", Title: "drafter takes values in another layout", Since: first, Severity: Note, For: cmlKind, Needs: NeedsPrograms, Targets: onCoreMLLLM, Check: checkDrafter, Doc: `mtp_drafter takes kv13_v and kv14_v with the last two axes exchanged against what the chunks give, so that its caller must transpose (coreml-llm.md 3.8, B45). Any other shape is of another model (warning).
Fix: transpose before the call.`},
	{ID: "RUN041", Title: "experts are picked by gather", Since: first, Severity: Note, For: modelKinds, Needs: NeedsPrograms, Check: checkExperts, Doc: `Gathering the weights of chosen experts at run time is reported as 46 ms a layer on the Neural Engine, and no other sparse form was found (CoreML-LLM ANE_MOE_ROUTE_EXHAUSTED, B18).
Fix: compute all experts, weighted by zero or not, or use the GPU.`},
	{ID: "RUN042", Title: "4-bit prefill chunks of Gemma 4 E4B", Since: first, Severity: Note, For: cmlKind, Needs: NeedsPrograms, Targets: iPhones, Check: checkPhonePrefill, Doc: `On iPhones they are reported to give unusable text; CoreML-LLM's own bundle for phones leaves them out (coreml-llm.md B46).
Fix: leave them out; prompts are then fed token by token.`},
	{ID: "RUN043", Title: "convolution with very many channels", Since: first, Severity: Note, For: modelKinds, Needs: NeedsPrograms, Check: checkWideConv, Doc: `One source reports that the Neural Engine refuses convolutions of more than 32768 output channels, another that a head of 262144 in one piece is the fastest form on an iPhone 17 Pro (coreml-llm.md B20: contradicted, hence a note).
Fix: measure both forms.`},
	{ID: "RUN044", Title: "one 4-bit table for a whole matrix", Since: first, Severity: Note, For: modelKinds, Needs: NeedsPrograms, Check: checkCoarsePalette, Doc: `16 values for a whole matrix are coarse: such packages are reported to diverge from their source (anemll.md 7, 26). The default of the converters is a table for 8 output channels.
Fix: palettize in groups of 8 channels.`},
	{ID: "RUN045", Title: "sigmoid is coarse on the Neural Engine", Since: first, Severity: Note, For: modelKinds, Needs: NeedsPrograms, Check: checkSigmoid, Doc: `The engine's own sigmoid, which silu uses too, has errors up to 0.015; by tanh it is exact (seed format, Neural Engine notes). ANEMLL's packages use it and work.
Fix: write silu as x (0.5 + 0.5 tanh(x / 2)).`},
	{ID: "RUN046", Title: "cache slot is written in two steps", Since: first, Severity: Warning, For: metaKinds, Needs: NeedsPrograms, Targets: onEngine, Check: checkSplitUpdates, Doc: `With a single key-value head, two slice updates of one slot, keys and values, fail to compile for the Neural Engine; one joint update works (seed format, States of gemma4).
Fix: join keys and values before the update.`},
	{ID: "RUN047", Title: "router of experts is compressed", Since: first, Severity: Warning, For: modelKinds, Needs: NeedsPrograms, Check: checkRouter, Doc: `A palettized router flips the choice of experts, which changes the text more than any other weight (seed format, qwen3_5 MoE variants).
Fix: leave the router in fp16.`},
	{ID: "RUN048", Title: "recurrent layers have 4-bit weights", Since: first, Severity: Note, For: modelKinds, Needs: NeedsPrograms, Check: checkNarrowRecurrent, Doc: `Recurrent states carry rounding errors on. With 4 bits Qwen3.5's top three tokens agree in 80 % of the steps instead of 100 %, and 2B is unusable; LFM2's depthwise convolutions fail on the Neural Engine (coreml-llm.md B14).
Fix: use 6 or 8 bits.`},
	{ID: "RUN049", Title: "whole cache is written for each token", Since: first, Severity: Note, For: modelKinds, Needs: NeedsPrograms, Check: checkBlendedCache, Doc: `cache * (1 - mask) + new * mask is safe, and reads and writes the whole cache for each token; slice_update writes the new rows only (coreml-llm.md B8).
Fix: use slice_update, which needs opset ios18.`},
	{ID: "RUN050", Title: "oldest ANEMLL that runs the package", Since: first, Severity: Note, For: metaKinds, Needs: NeedsPrograms | NeedsConfig, Check: checkOldestANEMLL, Doc: `Argmax heads, rotate functions, monolithic models and update masks came with ANEMLL 0.3.5, context variants with 0.3.6. The version in meta.yaml does not tell it: several snapshots wrote 0.3.5 with different keys (anemll.md 1.5).
Fix: nothing to do with that release or a newer one.`},
}
