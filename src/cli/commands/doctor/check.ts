// The contract of a check of `stowage doctor`: it reads the cluster or this machine and returns findings. checks/ has one file
// per check.
import type { Kind, KubeObject, Stored } from '../../../api/kind.ts'
import type { Clock } from '../../../base/clock.ts'
import type { Client, Connection } from '../../../client/index.ts'
import type { DriverFacts } from '../../../csi/index.ts'
import type { PrintedComponent } from '../rbac/select-rules.ts'
import type { VersionResponse } from './probe-server.ts'

export const FINDING_STATUSES = ['ok', 'warning', 'error', 'unknown'] as const
/** `unknown` means that nothing was checked, for example because the user may not read the objects. */
export type FindingStatus = (typeof FINDING_STATUSES)[number]

export interface Finding {
  readonly status: FindingStatus
  /** Kind and name of the object: `StorageClass fast`. Absent if the finding is about more than one object or about none. */
  readonly object?: string
  /** What was found, and its consequence. */
  readonly message: string
  /** What to do, as a command where possible. */
  readonly remedy?: string
}

export interface Check {
  readonly id: string
  readonly title: string
  /**
   * Returns no findings if there is nothing to check. Rejects with an ApiError if a request that the check needs fails.
   */
  run(context: DoctorContext): Promise<readonly Finding[]>
}

export interface DoctorContext {
  readonly client: Pick<Client, 'create' | 'commitsAtomically'>
  readonly cluster: Cluster
  readonly connection: Connection
  readonly clock: Clock
  /** The API server's first response. Has only the times if the server cannot be reached. */
  readonly server: VersionResponse
  /** The CSI driver to check. Absent for all drivers. */
  readonly driver?: string
  /** The driver at --csi-address. */
  readonly socket?: DriverSocket
  /** The component and the user whose permissions are checked. */
  readonly subject?: Subject
  readonly dataDir: string
}

/** Reads each kind at most once. */
export interface Cluster {
  /** Returns all objects, or none if the server does not serve the kind. */
  list<T extends KubeObject>(kind: Kind<T>): Promise<readonly Readonly<Stored<T>>[]>
  serves(kind: Kind): Promise<boolean>
}

export interface DriverSocket {
  readonly address: string
  /** What the driver reports, or why it could not be read. */
  readonly facts: DriverFacts | { readonly problem: string }
}

export interface Subject {
  readonly component: PrintedComponent
  /** Default: all features. */
  readonly features?: readonly string[]
  /** The namespace in which the component runs. Default: that of the user if it is a service account. */
  readonly namespace?: string
  /** The user whose permissions are checked. Default: that of the kubeconfig. */
  readonly user?: string
}

/** Returns the facts of the driver at the socket, if they could be read. */
export const getDriverFacts = ({ socket }: Pick<DoctorContext, 'socket'>): DriverFacts | undefined =>
  socket && 'name' in socket.facts ? socket.facts : undefined
