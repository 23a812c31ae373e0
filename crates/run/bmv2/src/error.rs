//! Errors of the P4 tools and of BMv2.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use sluice_kernel::KernelError;
use sluice_net::NetError;
use sluice_switchd::SwitchdError;
use thiserror::Error;

/// Why the program does not run on BMv2, or why a step failed there.
#[derive(Debug, Error)]
pub enum Bmv2Error {
    /// A tool is neither on the path nor in the folders of `P4_TOOLS`.
    #[error("{0} was not found: name its folder in P4_TOOLS, or put it on the PATH")]
    NoTool(&'static str),
    /// The compiler refuses the program.
    #[error("p4c-bm2-ss refuses {}: {why}", program.display())]
    Compile { program: PathBuf, why: String },
    /// The operating system refuses something.
    #[error("cannot {doing}: {why}")]
    System { doing: &'static str, why: io::Error },
    /// The switch ended, or does not answer any more.
    #[error("BMv2 {0}")]
    Gone(String),
    /// The switch refuses a call.
    #[error("BMv2 refuses {call}: {why}")]
    Refused { call: String, why: String },
    /// The compiled program does not fit this driver, or the switch's.
    #[error("the program's P4Info: {0}")]
    P4Info(String),
    /// No P4Runtime server is where it should be.
    #[error("no P4Runtime server listens on {0}: start simple_switch_grpc first, or look at the address")]
    Silent(SocketAddr),
    /// The switch runs another program than it should.
    #[error("BMv2 runs another program, or one of other sizes, so it is left alone: {0}")]
    OtherProgram(String),
    /// The switch has its ports elsewhere.
    #[error("BMv2 has no port {port} on {name}: start it with -i {port}@{name}, a port for each --interface")]
    OtherPorts { port: u16, name: String },
    /// Another controller has taken the switch over.
    #[error("another controller has taken BMv2 over, with the election id {0}")]
    Supplanted(String),
    /// The switch has not opened all its links.
    #[error("BMv2 opened {opened} of {links} links: bring all interfaces up (ip link set dev NAME up)")]
    NotOpened { opened: usize, links: usize },
    /// More links than the switch has ports.
    #[error("{count} links are more than BMv2 has ports for: give at most {most}")]
    Links { count: usize, most: u16 },
    /// The switch runs a program of another size.
    #[error(
        "BMv2 runs a program of another size: {register} should have {cells} cells; remove its rain.json"
    )]
    Size { register: String, cells: u32 },
    /// This user may not open links.
    #[error("BMv2 on links takes root: run it with sudo")]
    NotRoot,
    /// An error of links and namespaces.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// The program has no table or register for this step of a controller.
    #[error("the P4 program knows nothing of {0}")]
    Unknown(String),
}

impl From<NetError> for Bmv2Error {
    fn from(why: NetError) -> Self {
        KernelError::from(why).into()
    }
}

impl From<SwitchdError> for Bmv2Error {
    fn from(why: SwitchdError) -> Self {
        KernelError::from(why).into()
    }
}

impl Bmv2Error {
    /// Whether the caller's input, or what this machine lacks, is at fault.
    pub const fn is_bad_input(&self) -> bool {
        match self {
            Self::Kernel(why) => why.is_bad_input(),
            Self::System { .. }
            | Self::Gone(_)
            | Self::Refused { .. }
            | Self::Supplanted(_)
            | Self::Unknown(_) => false,
            _ => true,
        }
    }

    /// Wraps what the operating system says.
    pub(crate) fn system(doing: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |why| Self::System { doing, why }
    }
}
