// Package layers says which package may import which, and checks that a tree
// keeps to it: the arrows of ARCHITECTURE.md, a comment on every package, and a
// directory map that is true. It reads sources and never builds or runs them.
// Its invariant: a rule that is broken is reported with its reason.
package layers

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Module is the path of the module whose rules these are.
const Module = "github.com/homeostat-dev/homeostat"

// File is what the rules look at in one source file.
type File struct {
	// Dir is the package's folder below the root, "." for the root itself.
	Dir, Name string
	// Imports are the import paths; those of the module begin with "./".
	Imports []string
	// Calls are the functions of other packages that are used: "time.Now".
	Calls []string
	// Doc is true when the file has a package comment.
	Doc bool
}

// Test reports whether the file is only compiled for tests.
func (f File) Test() bool { return strings.HasSuffix(f.Name, "_test.go") }

// Violation is a broken rule.
type Violation struct{ Where, What, Reason string }

func (v Violation) String() string { return fmt.Sprintf("%s: %s\n    %s", v.Where, v.What, v.Reason) }

// Rule forbids imports or calls.
type Rule struct {
	// In are the folders to which it applies, with what is below them; Except
	// are those to which it does not.
	In, Except []string
	// Files are files to which it does not apply.
	Files []string
	// Tests is true when it holds for test files too.
	Tests bool
	// Forbid are imports, each with what is below it, and calls such as time.Now.
	// Allow are exceptions among the imports.
	Forbid, Allow []string
	// Siblings is true when the folders directly below In[0] must not import each other.
	Siblings bool
	// Reason is printed when it is broken.
	Reason string
}

// Check applies rules to files.
func Check(files []File, rules []Rule) []Violation {
	var out []Violation
	for _, f := range files {
		for _, r := range rules {
			out = append(out, r.check(f)...)
		}
	}
	return out
}

func (r Rule) check(f File) []Violation {
	if f.Test() && !r.Tests || !below(f.Dir, r.In) || below(f.Dir, r.Except) ||
		slices.Contains(r.Files, path.Join(f.Dir, f.Name)) {
		return nil
	}
	var out []Violation
	where := path.Join(f.Dir, f.Name)
	for _, imported := range f.Imports {
		if imported != "./"+f.Dir && below(imported, r.Forbid) && !below(imported, r.Allow) {
			out = append(out, Violation{Where: where, What: "imports " + imported, Reason: r.Reason})
		}
	}
	if r.Siblings {
		for _, imported := range f.Imports {
			mine, theirs := child(r.In[0], f.Dir), child("./"+r.In[0], imported)
			if theirs != "" && theirs != mine {
				out = append(out, Violation{Where: where, What: "imports " + imported, Reason: r.Reason})
			}
		}
	}
	for _, call := range f.Calls {
		if slices.Contains(r.Forbid, call) {
			out = append(out, Violation{Where: where, What: "uses " + call, Reason: r.Reason})
		}
	}
	return out
}

// child is the folder directly below parent in which a path is, "" when it is
// not below it.
func child(parent, p string) string {
	rest, ok := strings.CutPrefix(p, parent+"/")
	if !ok {
		return ""
	}
	name, _, _ := strings.Cut(rest, "/")
	return name
}

// below reports whether a path is one of the given ones or below one; "" is
// above everything.
func below(p string, above []string) bool {
	for _, a := range above {
		if a == "" || p == a || strings.HasPrefix(p, a+"/") {
			return true
		}
	}
	return false
}

// Comments complains about packages without a package comment.
func Comments(files []File) []Violation {
	documented := map[string]bool{}
	for _, f := range files {
		if !f.Test() {
			documented[f.Dir] = documented[f.Dir] || f.Doc
		}
	}
	var out []Violation
	for dir, ok := range documented {
		if !ok {
			out = append(out, Violation{Where: dir, What: "has no package comment",
				Reason: "A package says what it is for, what it never does, and its invariant."})
		}
	}
	slices.SortFunc(out, func(a, b Violation) int { return strings.Compare(a.Where, b.Where) })
	return out
}

// Map compares the folders that a README names with those that are there.
func Map(named, there []string) []Violation {
	var out []Violation
	for _, d := range there {
		if !slices.Contains(named, d) {
			out = append(out, Violation{Where: "README.md", What: "the directory map lacks " + d, Reason: "A newcomer finds every folder there, with its purpose."})
		}
	}
	for _, d := range named {
		if !slices.Contains(there, d) {
			out = append(out, Violation{Where: "README.md", What: "the directory map names " + d + ", which is not there", Reason: "A map that lies is worse than none."})
		}
	}
	return out
}

// Load reads the sources below root. Folders with a go.mod of their own belong
// to it too; testdata and hidden folders do not.
func Load(root string) ([]File, error) {
	var files []File
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "bin") {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		relative, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		f, err := parse(name, filepath.ToSlash(relative))
		if err == nil {
			files = append(files, f)
		}
		return err
	})
	return files, err
}

func parse(name, relative string) (File, error) {
	source, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return File{}, fmt.Errorf("read %s: %w", relative, err)
	}
	f := File{Dir: path.Dir(relative), Name: path.Base(relative), Doc: source.Doc.Text() != ""}
	names := map[string]string{}
	for _, spec := range source.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return File{}, fmt.Errorf("read %s: %w", relative, err)
		}
		local := path.Base(imported)
		if spec.Name != nil {
			local = spec.Name.Name
		}
		names[local] = imported
		f.Imports = append(f.Imports, shortened(imported))
	}
	f.Calls = calls(source, names)
	return f, nil
}

// shortened is an import path with the module's own prefix as "./".
func shortened(imported string) string {
	if imported == Module {
		return "./."
	}
	if rest, ok := strings.CutPrefix(imported, Module+"/"); ok {
		return "./" + rest
	}
	return imported
}

// calls are the selectors on imported packages, each once.
func calls(source *ast.File, names map[string]string) []string {
	seen := map[string]bool{}
	ast.Inspect(source, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok && names[x.Name] != "" {
				seen[names[x.Name]+"."+s.Sel.Name] = true
			}
		}
		return true
	})
	out := make([]string, 0, len(seen))
	for c := range seen {
		out = append(out, c)
	}
	slices.Sort(out)
	return out
}
