// Package check ends a program at the first thing that is not as it must be; the stack shows where.
package check

import (
	"fmt"
	"reflect"
)

// That panics with the message unless ok.
func That(ok bool, format string, arguments ...any) {
	if !ok {
		panic(fmt.Sprintf(format, arguments...))
	}
}

// Equal panics unless got is deeply equal to want.
func Equal[T any](got, want T) {
	That(reflect.DeepEqual(got, want), "got %+v, want %+v", got, want)
}

// OK panics if a call has failed.
func OK(err error) {
	That(err == nil, "%v", err)
}

// Must returns the value of a call that must not fail.
func Must[T any](value T, err error) T {
	OK(err)
	return value
}
