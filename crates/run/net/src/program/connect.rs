//! The flags of whoever calls a controller: where it is, whom to believe, and what to show.

use std::net::SocketAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use sluice_rpc::{ClientTls, Remote};

use crate::NetError;
use crate::client::{ClientOptions, SpineClients};

/// The controller's default address.
pub const CONTROLLER_DEFAULT: &str = "127.0.0.1:7400";

/// Where a controller is, and how caller and controller know each other. For a program of yours: flatten it
/// into its flags.
#[derive(Clone, Debug, PartialEq, Eq, clap::Args, Serialize, Deserialize)]
pub struct ControllerArgs {
    /// Where the controller is: HOST:PORT, http://HOST:PORT or https://HOST:PORT; if it has standbys, all of
    /// them, with commas between. Of several spines those of each, with commas between; one spine's
    /// controllers, of which one leads, with plus signs.
    #[arg(long, value_name = "ADDRESS", default_value = CONTROLLER_DEFAULT)]
    pub controller: String,
    /// How it and its caller know each other.
    #[command(flatten)]
    #[serde(flatten)]
    pub tls: TlsArgs,
}

impl ControllerArgs {
    /// The controller that these flags name.
    ///
    /// # Errors
    /// [`NetError::Rpc`] for an invalid address, and for a file that does not contain a certificate or key.
    pub fn remote(&self) -> Result<Remote, NetError> {
        self.tls.remote(&self.controller)
    }
}

/// The flags of a client: where its controller is, and where it is itself.
#[derive(Clone, Debug, clap::Args)]
pub struct ClientArgs {
    /// Where the controller is, and how it and this client know each other.
    #[command(flatten)]
    pub controller: ControllerArgs,
    /// Where tasks leave and replies come in: an address that the switch and the workers can reach.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    pub listen: SocketAddr,
    /// The client's name, unlike all others [default: client-PID-CHANCE, behind the name in its certificate].
    #[arg(long)]
    pub name: Option<String>,
}

impl ClientArgs {
    /// The options of the client that these flags describe, of one rack: several controllers are a leader
    /// and its standbys.
    ///
    /// # Errors
    /// As [`ControllerArgs::remote`].
    pub fn options(&self) -> Result<ClientOptions, NetError> {
        Ok(self.options_at(self.controller.remote()?))
    }

    /// Registers the client with its controller, with the one that leads of several (`--controller A,B`), or
    /// with the controllers of several spines (written the same). `seed` seeds the draw of a spine for each
    /// task.
    ///
    /// # Errors
    /// As [`ControllerArgs::remote`] and [`Client::connect`](crate::Client::connect).
    pub fn connect(&self, seed: u64) -> Result<SpineClients, NetError> {
        let controllers = self.controllers()?;
        SpineClients::connect(&self.options_at(controllers[0].clone()), &controllers, seed)
    }

    fn controllers(&self) -> Result<Vec<Remote>, NetError> {
        self.controller.tls.remotes(&self.controller.controller)
    }

    fn options_at(&self, controller: Remote) -> ClientOptions {
        let defaults = ClientOptions::of(controller);
        let name = self.name.clone().unwrap_or_else(|| defaults.name.clone());
        ClientOptions { name, listen: self.listen, ..defaults }
    }
}

/// How a caller and what it calls know each other.
#[derive(Clone, Debug, Default, PartialEq, Eq, clap::Args, Serialize, Deserialize)]
pub struct TlsArgs {
    /// PEM file of the authority that signed the certificate of what is called, or of that certificate
    /// itself; turns TLS on.
    #[arg(long, value_name = "FILE")]
    pub ca: Option<PathBuf>,
    /// PEM files of the certificate to show, which says who this is and what it may do, and of its key.
    #[arg(long, value_names = ["CERTIFICATE", "KEY"], num_args = 2, requires = "ca")]
    pub identity: Option<Vec<PathBuf>>,
}

impl TlsArgs {
    /// The services at these addresses, which are separated by commas; there must be at least one. A service
    /// may have several addresses, with plus signs between.
    ///
    /// # Errors
    /// As [`TlsArgs::remote`].
    pub fn remotes(&self, addresses: &str) -> Result<Vec<Remote>, NetError> {
        addresses.split(',').map(|address| self.remote(address)).collect()
    }

    /// The service at `address`, with the certificates that these flags name.
    ///
    /// # Errors
    /// [`NetError::Rpc`] for an invalid address, and for a file that does not contain a certificate or key.
    pub fn remote(&self, address: &str) -> Result<Remote, NetError> {
        let identity = match self.identity.as_deref() {
            Some([certificate, key]) => Some((certificate.as_path(), key.as_path())),
            _ => None,
        };
        let tls = self.ca.as_deref().map(|ca| ClientTls::from_files(ca, identity)).transpose()?;
        Ok(Remote::new(address, tls.as_ref())?)
    }
}
