"""Every check of an overlay whole, by name; each yields what is wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from scripts.manifests.checks.commands import (
    check_commands,
    check_deadline,
    check_run_directory,
)
from scripts.manifests.checks.endings import (
    check_grace,
    check_job_ends,
    check_rayjob_ends,
)
from scripts.manifests.checks.mirrors import (
    check_connections,
    check_mirrors,
    check_refusals,
    check_tokens,
)
from scripts.manifests.checks.mpi import (
    check_mpi_ends,
    check_mpi_listener,
    check_mpi_logs,
    check_mpi_mpirun,
    check_mpi_policies,
    check_mpi_replicas,
    check_mpi_roles,
    check_mpi_sizes,
    check_mpi_target,
)
from scripts.manifests.checks.names import check_names
from scripts.manifests.checks.network import check_network
from scripts.manifests.checks.pods import (
    check_readiness,
    check_security,
    check_shared_memory,
)
from scripts.manifests.checks.ports import check_listener, check_services
from scripts.manifests.checks.processes import check_processes
from scripts.manifests.checks.queues import check_capacity, check_queue_labels
from scripts.manifests.checks.ray import (
    check_cluster_selector,
    check_head,
    check_ray_cores,
    check_replicas,
    check_roles,
)
from scripts.manifests.checks.references import (
    check_accounts,
    check_claims,
    check_secrets,
    check_sharing,
    check_sources,
    check_variables,
    check_volumes,
)
from scripts.manifests.checks.scripts import (
    check_data,
    check_data_paths,
    check_scripts,
    check_ssh,
)
from scripts.manifests.checks.sizes import check_requests, check_resources
from scripts.manifests.checks.versions import check_images, check_ray_version
from scripts.manifests.finding import Finding
from scripts.manifests.overlay import Overlay

__all__ = ["CHECKS", "Check"]

Check = Callable[[Overlay], Iterator[Finding]]

CHECKS: tuple[Check, ...] = (
    check_names,
    check_volumes,
    check_claims,
    check_sharing,
    check_sources,
    check_secrets,
    check_variables,
    check_accounts,
    check_images,
    check_ray_version,
    check_resources,
    check_requests,
    check_shared_memory,
    check_security,
    check_network,
    check_readiness,
    check_grace,
    check_job_ends,
    check_rayjob_ends,
    check_replicas,
    check_head,
    check_ray_cores,
    check_roles,
    check_cluster_selector,
    check_queue_labels,
    check_capacity,
    check_services,
    check_listener,
    check_commands,
    check_run_directory,
    check_deadline,
    check_processes,
    check_mirrors,
    check_connections,
    check_tokens,
    check_refusals,
    check_scripts,
    check_data,
    check_data_paths,
    check_ssh,
    check_mpi_replicas,
    check_mpi_ends,
    check_mpi_policies,
    check_mpi_sizes,
    check_mpi_mpirun,
    check_mpi_logs,
    check_mpi_roles,
    check_mpi_target,
    check_mpi_listener,
)
