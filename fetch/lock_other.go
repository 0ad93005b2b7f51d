//go:build !unix && !windows

package fetch

import (
	"errors"
	"math"
	"os"
)

func lockFile(*os.File) error { return errNoLocks }

func unlockFile(*os.File) {}

func isDiskFull(error) bool { return false }

func freeSpace(string) (int64, error) { return math.MaxInt64, errors.ErrUnsupported }
