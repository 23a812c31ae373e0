//! `include/sluice.h` is what the library's source says: written anew with BLESS=1, and compiled as C99 and
//! C++17 with all warnings.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use super::common::{c_compiler, cxx_compiler, here};
use syn::{Attribute, Expr, Fields, FnArg, Item, ItemFn, Lit, Meta, Pat, ReturnType, Type, Visibility};

/// The sources, in the header's order.
const SOURCES: [&str; 9] =
    ["types", "text", "fault", "options", "client", "labels", "queue", "outcome", "service"];
const LAST: &str = "worker";
const COLUMNS: usize = 110;

#[test]
fn the_header_says_what_the_library_has() {
    let path = here().join("include/sluice.h");
    let made = header();
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &made).expect("written");
    }
    let committed = std::fs::read_to_string(&path).expect("it is there");
    assert!(made == committed, "BLESS=1 cargo test -p sluice-c --test c writes include/sluice.h anew");
}

#[test]
fn the_header_is_c99_and_cxx17_without_a_warning() {
    let all = ["-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only"];
    let c = c_compiler().map(|cc| (cc, "-std=c99", "c", "sluice.h"));
    let cxx = ["-std=c++17", "-std=c++20"].map(|std| cxx_compiler().map(|cc| (cc, std, "c++", "sluice.hpp")));
    for (compiler, std, language, header) in [c].into_iter().chain(cxx).flatten() {
        let folder = tempfile::tempdir().expect("a folder");
        let source = folder.path().join("main");
        std::fs::write(&source, format!("#include <{header}>\nint main(void) {{ return 0; }}\n"))
            .expect("written");
        let mut check = Command::new(compiler);
        check.args(all).args([std, "-x", language, "-I"]).arg(here().join("include")).arg(&source);
        let output = check.output().expect("it starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

fn header() -> String {
    let part = |name: &str| std::fs::read_to_string(here().join("include").join(name)).expect("it is there");
    let mut text = part("head.h.in");
    for name in SOURCES.iter().chain([&LAST]) {
        let path = here().join(format!("src/{name}.rs"));
        for item in items(&path) {
            declare(&item, &mut text);
        }
    }
    text + "\n" + &part("tail.h.in")
}

fn items(path: &Path) -> Vec<Item> {
    let source = std::fs::read_to_string(path).expect("it is there");
    syn::parse_file(&source).unwrap_or_else(|why| panic!("{}: {why}", path.display())).items
}

fn declare(item: &Item, text: &mut String) {
    let declared = match item {
        Item::Const(of) if is_public(&of.vis) => {
            comment(&of.attrs, "") + &format!("#define {} {}\n", of.ident, value(&of.expr))
        }
        Item::Enum(of) if is_public(&of.vis) => enumeration(of),
        Item::Struct(of) if is_public(&of.vis) => structure(of),
        Item::Type(of) if of.ident == "SluiceServe" => {
            let Type::BareFn(function) = &*of.ty else { panic!("it is a function") };
            let arguments = function.inputs.iter().map(|argument| {
                let (name, _) = argument.name.as_ref().expect("arguments have names");
                declared_as(&argument.ty, &name.to_string())
            });
            let arguments = arguments.collect::<Vec<_>>().join(", ");
            comment(&of.attrs, "")
                + &format!("typedef int (*{})({arguments});\n", snake(&of.ident.to_string()))
        }
        Item::Fn(of) if is_public(&of.vis) && is_exported(&of.attrs) => function(of),
        _ => return,
    };
    text.push('\n');
    text.push_str(&declared);
}

fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

fn is_exported(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::List(list) => list.path.is_ident("unsafe") && list.tokens.to_string() == "no_mangle",
        _ => false,
    })
}

fn value(expression: &Expr) -> String {
    match expression {
        Expr::Lit(literal) => match &literal.lit {
            Lit::Int(number) => number.base10_digits().to_owned(),
            _ => panic!("constants are numbers"),
        },
        Expr::Path(_) => "UINT64_MAX".to_owned(),
        _ => panic!("constants are numbers"),
    }
}

/// The comment of an item, from its documentation.
fn comment(attributes: &[Attribute], indent: &str) -> String {
    let lines = attributes.iter().filter_map(|attribute| match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("doc") => match &pair.value {
            Expr::Lit(literal) => match &literal.lit {
                Lit::Str(text) => Some(text.value()),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    });
    let lines: Vec<String> = lines.map(|line| line.strip_prefix(' ').unwrap_or(&line).to_owned()).collect();
    let mut text = String::new();
    for (at, line) in lines.iter().enumerate() {
        let begins = if at == 0 { "/* " } else { " * " };
        let ends = if at + 1 == lines.len() { " */" } else { "" };
        writeln!(text, "{}", format!("{indent}{begins}{line}{ends}").trim_end()).expect("a string has room");
    }
    text
}

/// `SluiceKind` as `sluice_kind`.
fn snake(camel: &str) -> String {
    let mut snake = String::new();
    for c in camel.chars() {
        if c.is_uppercase() && !snake.is_empty() {
            snake.push('_');
        }
        snake.extend(c.to_lowercase());
    }
    snake
}

fn enumeration(of: &syn::ItemEnum) -> String {
    let name = snake(&of.ident.to_string());
    let prefix = if name == "sluice_status" { "sluice".to_owned() } else { name.clone() };
    let mut text = format!("{}typedef enum {name} {{\n", comment(&of.attrs, ""));
    for variant in &of.variants {
        let (_, number) = variant.discriminant.as_ref().expect("each has its number");
        let constant = format!("{prefix}_{}", snake(&variant.ident.to_string())).to_uppercase();
        text += &comment(&variant.attrs, "    ");
        writeln!(text, "    {constant} = {},", value(number)).expect("a string has room");
    }
    text + &format!("}} {name};\n")
}

fn structure(of: &syn::ItemStruct) -> String {
    let name = snake(&of.ident.to_string());
    let Fields::Named(fields) = &of.fields else { panic!("fields have names") };
    let mut text = format!("{}typedef struct {name} {{\n", comment(&of.attrs, ""));
    for field in &fields.named {
        let called = field.ident.as_ref().expect("fields have names").to_string();
        text += &comment(&field.attrs, "    ");
        writeln!(text, "    {};", declared_as(&field.ty, called.trim_start_matches("r#"))).expect("room");
    }
    text + &format!("}} {name};\n")
}

fn function(of: &ItemFn) -> String {
    let name = of.sig.ident.to_string();
    let arguments = of.sig.inputs.iter().map(|argument| {
        let FnArg::Typed(argument) = argument else { panic!("a function of C has no self") };
        let Pat::Ident(called) = &*argument.pat else { panic!("arguments have names") };
        declared_as(&argument.ty, called.ident.to_string().trim_start_matches("r#"))
    });
    let arguments: Vec<String> = arguments.collect();
    let returned = match &of.sig.output {
        ReturnType::Type(_, returned) => declared_as(returned, &name),
        ReturnType::Default => format!("void {name}"),
    };
    comment(&of.attrs, "") + &prototype(&returned, &arguments)
}

/// A prototype, in lines that are not too long.
fn prototype(returned: &str, arguments: &[String]) -> String {
    if arguments.is_empty() {
        return format!("{returned}(void);\n");
    }
    let indent = " ".repeat(returned.len() + 1);
    let (mut text, mut line) = (String::new(), format!("{returned}("));
    for (at, argument) in arguments.iter().enumerate() {
        let more = format!("{argument}{}", if at + 1 == arguments.len() { ");" } else { "," });
        if at > 0 && line.len() + 1 + more.len() > COLUMNS {
            writeln!(text, "{line}").expect("a string has room");
            line = format!("{indent}{more}");
        } else {
            line += if at > 0 { " " } else { "" };
            line += &more;
        }
    }
    text + &line + "\n"
}

/// A declaration of `name` with this type.
fn declared_as(of: &Type, name: &str) -> String {
    match of {
        Type::Ptr(pointer) => {
            let is_const = pointer.const_token.is_some();
            match &*pointer.elem {
                // The outer of two pointers: `const` stands behind the inner one.
                inner @ Type::Ptr(_) => {
                    declared_as(inner, &format!("{}*{name}", if is_const { "const " } else { "" }))
                }
                inner => format!("{}{} *{name}", if is_const { "const " } else { "" }, plain(inner)),
            }
        }
        of => format!("{} {name}", plain(of)),
    }
}

fn plain(of: &Type) -> String {
    let Type::Path(path) = of else { panic!("a type that C has not") };
    let last = path.path.segments.last().expect("a name");
    match last.ident.to_string().as_str() {
        "u8" => "uint8_t".to_owned(),
        "u16" => "uint16_t".to_owned(),
        "u32" => "uint32_t".to_owned(),
        "u64" => "uint64_t".to_owned(),
        "usize" => "size_t".to_owned(),
        "c_int" => "int".to_owned(),
        "c_char" => "char".to_owned(),
        "c_void" => "void".to_owned(),
        "Option" => "sluice_serve".to_owned(),
        sluice if sluice.starts_with("Sluice") => snake(sluice.trim_end_matches("Code")),
        other => panic!("{other} is no type of C"),
    }
}
