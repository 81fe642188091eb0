// The interface of a provisioner plugin: its name, what it supports, how to create and delete a volume. The controllers do
// the rest (selection of claims, retries, events, the PersistentVolume, recovery from crashes). Plain types only, because
// they are published unchanged. Errors that a plugin may throw: failures.ts.
import type { ParameterDeclarations, ParameterValues } from './parameter.ts'

/** A plugin with any parameters and labels. */
// biome-ignore lint/suspicious/noExplicitAny: the type parameters occur in both argument and result positions
export type AnyProvisionerPlugin = ProvisionerPlugin<any, any>

export interface ProvisionerPlugin<
  P extends ParameterDeclarations = ParameterDeclarations,
  L extends LabelDeclarations = LabelDeclarations,
> {
  /** The provisioner of storage classes: `<your domain>/<name>`, such as `example.com/fast-disks`. */
  readonly name: string
  /** The parameters a storage class may set. A class with any other is rejected. Default: none. */
  readonly parameters?: P
  /** The labels a claim's selector may require. A selector with any other is rejected. Default: none. */
  readonly labels?: L
  /** How its volumes can be mounted. Default: ReadWriteOnce and ReadWriteOncePod. */
  readonly accessModes?: readonly AccessMode[]
  /** Default: Filesystem. */
  readonly volumeModes?: readonly VolumeMode[]
  /** Whether its volumes can be mounted with the mount options of a class. Default: a class with any is rejected. */
  readonly takesMountOptions?: boolean
  /** The node labels it understands in a class's allowedTopologies. Default: a class with any is rejected. */
  readonly topologyKeys?: readonly string[]
  /**
   * Creates the volume. The same request may be repeated after a failure or a crash, always with the same `volumeName`:
   * then finds the volume of the earlier call, completes it if necessary, and returns it.
   * Calls for different volumes run at once; calls for one volume do not.
   */
  provision(request: ProvisionRequest<P, L>, call: Call): Promise<ProvisionedVolume>
  /** Deletes the storage of the volume. Succeeds if it does not exist. */
  delete(volume: ExistingVolume, call: Call): Promise<void>
  /**
   * The volume that an earlier `provision` created under this name, if any. Called when a request is rejected before
   * `provision`, so that no volume is forgotten if the class was replaced between a crash and the next try.
   */
  find?(
    wanted: { readonly volumeName: string; readonly sizeBytes: bigint },
    call: Call,
  ): Promise<ProvisionedVolume | undefined>
  /**
   * Whether the source of the volume is one that this provisioner creates. Volumes without the provisioned-by annotation
   * are deleted if this returns true; volumes with its annotation for which it returns false are left alone, with an
   * event. Default: only volumes with its annotation.
   */
  owns?(volume: ExistingVolume): boolean
}

export type AccessMode = 'ReadWriteOnce' | 'ReadOnlyMany' | 'ReadWriteMany' | 'ReadWriteOncePod'
export type VolumeMode = 'Filesystem' | 'Block'

/** By label, the values its volumes can have: `{ 'example.com/tier': ['fast', 'slow'] }`. */
export type LabelDeclarations = Readonly<Record<string, readonly string[]>>

/** By declared label, the values that the claim accepts: at least one, and all declared values if its selector does not mention the label. */
export type AcceptedLabels<L extends LabelDeclarations> = { readonly [K in keyof L]: readonly L[K][number][] }

export interface ProvisionRequest<
  P extends ParameterDeclarations = ParameterDeclarations,
  L extends LabelDeclarations = LabelDeclarations,
> {
  /** The name of the new volume, unique and the same in every try: `pvc-` and a UUID. */
  readonly volumeName: string
  /** Minimum capacity. */
  readonly sizeBytes: bigint
  /** Maximum capacity, if the claim has a limit. */
  readonly sizeLimitBytes: bigint | undefined
  readonly accessModes: readonly AccessMode[]
  readonly volumeMode: VolumeMode
  /** The parameters of the class, parsed and checked by their declarations, with defaults. */
  readonly parameters: ParameterValues<P>
  readonly labels: AcceptedLabels<L>
  /** The mount options of the class; the result need not repeat them. */
  readonly mountOptions: readonly string[]
  /** Topologies that the class allows: node labels with their allowed values; one term must match. Empty: anywhere. */
  readonly allowedTopologies: readonly Readonly<Record<string, readonly string[]>>[]
  /** The node of the first pod, if the class has WaitForFirstConsumer. */
  readonly selectedNode: string | undefined
  readonly className: string
  readonly claim: {
    readonly namespace: string
    readonly name: string
    readonly uid: string
    readonly labels: Readonly<Record<string, string>>
    readonly annotations: Readonly<Record<string, string>>
  }
}

export interface ProvisionedVolume {
  /** Actual capacity: at least the requested one. */
  readonly sizeBytes: bigint | number
  /** How nodes access it: exactly one of the sources. */
  readonly source: VolumeSource
  /** Includes an accepted value for each label that the claim's selector requires. */
  readonly labels?: Readonly<Record<string, string>>
  /** Data that `delete` needs. Every user who can read volumes sees it: no credentials, and no references to them. */
  readonly annotations?: Readonly<Record<string, string>>
  /** Node labels: the volume can be used on nodes that have all labels of any one of these. Default: everywhere. */
  readonly reachableFrom?: readonly Readonly<Record<string, string>>[]
  /** In addition to those of the class. */
  readonly mountOptions?: readonly string[]
}

/** A volume of the cluster. */
export interface ExistingVolume {
  readonly name: string
  readonly source: Partial<VolumeSources>
  readonly sizeBytes: bigint
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
}

export interface Call {
  /** Aborted when the process stops or the call exceeds its time limit: stop and throw. */
  readonly signal: AbortSignal
}

/** The sources a volume can have; their fields are those of a PersistentVolume. */
export interface VolumeSources {
  readonly hostPath: { readonly path: string; readonly type?: '' | 'Directory' | 'DirectoryOrCreate' }
  readonly local: { readonly path: string; readonly fsType?: string }
  readonly nfs: { readonly server: string; readonly path: string; readonly readOnly?: boolean }
  readonly iscsi: {
    readonly targetPortal: string
    readonly portals?: readonly string[]
    readonly iqn: string
    readonly lun: number
    readonly fsType?: string
    readonly readOnly?: boolean
  }
  readonly fc: {
    readonly targetWWNs?: readonly string[]
    readonly lun?: number
    readonly wwids?: readonly string[]
    readonly fsType?: string
    readonly readOnly?: boolean
  }
  readonly flexVolume: {
    readonly driver: string
    readonly fsType?: string
    readonly readOnly?: boolean
    readonly options?: Readonly<Record<string, string>>
  }
  readonly csi: {
    readonly driver: string
    readonly volumeHandle: string
    readonly fsType?: string
    readonly readOnly?: boolean
    readonly volumeAttributes?: Readonly<Record<string, string>>
  }
}

/** Exactly one of VolumeSources. */
export type VolumeSource = {
  [K in keyof VolumeSources]: { readonly [S in K]: VolumeSources[S] } & {
    readonly [S in Exclude<keyof VolumeSources, K>]?: never
  }
}[keyof VolumeSources]
