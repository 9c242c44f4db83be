// Protogen generates Go from the project's .proto files without protoc: it
// compiles every .proto file below a directory and feeds the descriptors to the
// plugins that this module pins, protoc-gen-go and protoc-gen-go-grpc. Each
// generated file lands beside its source.
//
// With -check it writes nothing, names every generated file that is missing,
// stale or left over, and exits with status 1 if there is one.
//
// Run it in this module's directory: go run ./protogen
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/linker"
	"github.com/bufbuild/protocompile/protoutil"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

// generatedSuffix is how the name of every file that the plugins write ends.
const generatedSuffix = ".pb.go"

func main() {
	root := flag.String("root", filepath.Join("..", "api"), "the directory that imports are relative to")
	check := flag.Bool("check", false, "write nothing; fail if a generated file is not up to date")
	flag.Parse()
	if err := run(context.Background(), *root, *check); err != nil {
		fmt.Fprintln(os.Stderr, "protogen:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, root string, check bool) error {
	sources, err := list(root, ".proto")
	if err != nil {
		return err
	}
	if len(sources) == 0 {
		return fmt.Errorf("no .proto file below %s", root)
	}
	files, err := compile(ctx, root, sources)
	if err != nil {
		return err
	}
	want, err := generate(ctx, sources, files)
	if err != nil {
		return err
	}
	have, err := list(root, generatedSuffix)
	if err != nil {
		return err
	}
	if check {
		return compare(root, want, have)
	}
	return write(root, want, have)
}

// list returns the files below root whose names end with suffix, as sorted
// slash-separated paths relative to root.
func list(root, suffix string) ([]string, error) {
	var found []string
	err := fs.WalkDir(os.DirFS(root), ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.HasSuffix(path, suffix) {
			found = append(found, path)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list %s files below %s: %w", suffix, root, err)
	}
	return found, nil
}

// compile returns the descriptors of sources and of all that they import,
// every file after the files that it imports.
func compile(ctx context.Context, root string, sources []string) ([]*descriptorpb.FileDescriptorProto, error) {
	compiler := protocompile.Compiler{
		Resolver:       protocompile.WithStandardImports(&protocompile.SourceResolver{ImportPaths: []string{root}}),
		SourceInfoMode: protocompile.SourceInfoStandard,
	}
	linked, err := compiler.Compile(ctx, sources...)
	if err != nil {
		return nil, fmt.Errorf("compile: %w", err)
	}
	return inImportOrder(linked), nil
}

func inImportOrder(linked linker.Files) []*descriptorpb.FileDescriptorProto {
	var ordered []*descriptorpb.FileDescriptorProto
	seen := make(map[string]bool)
	var visit func(file protoreflect.FileDescriptor)
	visit = func(file protoreflect.FileDescriptor) {
		if seen[file.Path()] {
			return
		}
		seen[file.Path()] = true
		imports := file.Imports()
		for i := range imports.Len() {
			visit(imports.Get(i).FileDescriptor)
		}
		ordered = append(ordered, protoutil.ProtoFromFileDescriptor(file))
	}
	for _, file := range linked {
		visit(file)
	}
	return ordered
}

// generate runs the plugins and returns what they wrote, by path relative to
// the root of the sources.
func generate(
	ctx context.Context, sources []string, files []*descriptorpb.FileDescriptorProto,
) (map[string]string, error) {
	dir, err := os.MkdirTemp("", "protogen")
	if err != nil {
		return nil, fmt.Errorf("make a directory for the plugins: %w", err)
	}
	defer os.RemoveAll(dir)

	plugins := []string{
		"google.golang.org/protobuf/cmd/protoc-gen-go",
		"google.golang.org/grpc/cmd/protoc-gen-go-grpc",
	}
	build := exec.CommandContext(ctx, "go", append([]string{"build", "-o", dir + string(filepath.Separator)},
		plugins...)...)
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return nil, fmt.Errorf("build the plugins: %w", err)
	}
	request, err := proto.Marshal(&pluginpb.CodeGeneratorRequest{
		FileToGenerate: sources,
		Parameter:      proto.String("paths=source_relative"),
		ProtoFile:      files,
	})
	if err != nil {
		return nil, fmt.Errorf("marshal the plugins' request: %w", err)
	}
	generated := make(map[string]string)
	for _, plugin := range plugins {
		name := filepath.Base(plugin)
		response, err := ask(ctx, filepath.Join(dir, name), request)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		for _, file := range response.GetFile() {
			generated[file.GetName()] = file.GetContent()
		}
	}
	return generated, nil
}

// ask runs one plugin on a serialized request.
func ask(ctx context.Context, plugin string, request []byte) (*pluginpb.CodeGeneratorResponse, error) {
	cmd := exec.CommandContext(ctx, plugin)
	cmd.Stdin = bytes.NewReader(request)
	cmd.Stderr = os.Stderr
	output, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	response := new(pluginpb.CodeGeneratorResponse)
	if err := proto.Unmarshal(output, response); err != nil {
		return nil, fmt.Errorf("unmarshal the response: %w", err)
	}
	if response.Error != nil {
		return nil, errors.New(response.GetError())
	}
	return response, nil
}

// compare reports each difference between the files wanted and the files there.
func compare(root string, want map[string]string, have []string) error {
	var stale []string
	for _, path := range slices.Sorted(maps.Keys(want)) {
		content, err := os.ReadFile(filepath.Join(root, path))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			stale = append(stale, path+" is missing")
		case err != nil:
			return err
		case string(content) != want[path]:
			stale = append(stale, path+" differs from what its source generates")
		}
	}
	for _, path := range leftOver(want, have) {
		stale = append(stale, path+" has no source")
	}
	if len(stale) > 0 {
		return fmt.Errorf("generated files are not up to date (make gen writes them):\n\t%s", strings.Join(stale, "\n\t"))
	}
	return nil
}

// write makes the files there equal to the files wanted.
func write(root string, want map[string]string, have []string) error {
	for _, path := range slices.Sorted(maps.Keys(want)) {
		if err := os.WriteFile(filepath.Join(root, path), []byte(want[path]), 0o644); err != nil {
			return err
		}
	}
	for _, path := range leftOver(want, have) {
		if err := os.Remove(filepath.Join(root, path)); err != nil {
			return err
		}
	}
	return nil
}

func leftOver(want map[string]string, have []string) []string {
	var paths []string
	for _, path := range have {
		if _, ok := want[path]; !ok {
			paths = append(paths, path)
		}
	}
	return paths
}
