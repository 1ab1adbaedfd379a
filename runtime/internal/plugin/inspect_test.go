package plugin

import (
	"testing"
)

func TestInspectTellsKindsGenerationAndVersion(t *testing.T) {
	info, err := Inspect(scripted(t))
	if err != nil || len(info.Kinds) != 2 || info.Generation != 2 || info.Version != "1.2.3" {
		t.Fatalf("%+v, %v", info, err)
	}
}
