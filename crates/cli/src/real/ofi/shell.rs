//! Assignments in the syntax of a shell, quoted so that the shell reads the exact values.

use clap::ValueEnum;

/// Shell language.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(in crate::real) enum Shell {
    /// sh, bash, zsh, dash and other POSIX shells
    #[default]
    #[value(alias = "bash", alias = "zsh")]
    Sh,
    /// fish
    Fish,
}

impl Shell {
    /// Returns a line that sets a variable for all programs that the shell starts.
    pub(in crate::real) fn export(self, name: &str, value: &str) -> String {
        match self {
            Shell::Sh => format!("export {name}='{}'\n", value.replace('\'', r"'\''")),
            Shell::Fish => {
                let value = value.replace('\\', r"\\").replace('\'', r"\'");
                format!("set -gx {name} '{value}'\n")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_back_what_was_meant() {
        for value in ["/plain", "two words", "it's $HOME `x` \\ \"q\" *", "a\nb", "'"] {
            let script = format!("{}printf %s \"$X\"", Shell::Sh.export("X", value));
            let read = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
            assert_eq!(String::from_utf8(read.stdout).unwrap(), value);
        }
        assert_eq!(Shell::Fish.export("X", r"it's \ $y"), "set -gx X 'it\\'s \\\\ $y'\n");
    }
}
