// Package fetch gets packages from the Hugging Face hub: verified, resumable
// and no more of them than is needed. It also shows a repository as an fs.FS,
// so that a package can be judged without its weights.
//
// What is never done: a file under its final name that is not whole and not
// hashed; a file name from the network that was not checked; a token sent to
// another host than the hub.
//
// The protocol is the one that huggingface_hub (Python) speaks, the cache is
// its cache: both programs may use one folder at the same time.
//
// Files: config.go (Config), env.go (ConfigFromEnv), ref.go (names of
// repositories), paths.go (which file names are accepted), client.go (Client,
// requests with retries), redirect.go (redirects and the token), retry.go
// (waiting), stall.go (silent connections), errors.go and diagnose.go (what
// went wrong), api.go (revision, tree, one file), digest.go (ETags and
// hashes), cache.go (cache layout), lock.go and lock_*.go (locks, free
// space), space.go (FreeSpace), plan.go, select.go, pattern.go and variant.go
// (what to fetch), lockfile.go (exact sets), download.go (all files of a plan),
// transfer.go (one file), place.go (putting a file in its place), localdir.go
// (plain folders), verify.go (hashing what is there, repair), cachelist.go and
// cacherm.go (housekeeping), remotefs.go and remotefile.go (fs.FS over the
// hub), unpack.go (zip files), unpacked.go (comparing what they gave), bundles.go
// (.anemllpkg).
package fetch
