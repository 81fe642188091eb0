// The interface of a provisioner plugin: its name, the features it supports, and functions that create, change and delete
// volumes. The controllers select claims, retry, record events, create PersistentVolumes and recover from crashes. The types are
// published unchanged. failures.ts defines the errors that a plugin may throw.
import type { ParameterDeclarations, ParameterValues } from './parameter.ts'

/** A plugin with any parameters, labels and attributes. */
// biome-ignore lint/suspicious/noExplicitAny: the type parameters occur in both argument and result positions
export type AnyProvisionerPlugin = ProvisionerPlugin<any, any, any>

export interface ProvisionerPlugin<
  P extends ParameterDeclarations = ParameterDeclarations,
  L extends LabelDeclarations = LabelDeclarations,
  A extends ParameterDeclarations = ParameterDeclarations,
> {
  /** The provisioner of storage classes: `<your domain>/<name>`, such as `example.com/fast-disks`. */
  readonly name: string
  /** The parameters that a storage class may set. A class with other parameters is rejected. Default: none. */
  readonly parameters?: P
  /** The labels that a claim's selector may require. A selector with other labels is rejected. Default: none. */
  readonly labels?: L
  /** The access modes of its volumes. Default: ReadWriteOnce and ReadWriteOncePod. */
  readonly accessModes?: readonly AccessMode[]
  /** The volume modes of its volumes. Default: Filesystem. */
  readonly volumeModes?: readonly VolumeMode[]
  /** Whether its volumes support mount options. If not, a class with mount options is rejected. Default: false. */
  readonly takesMountOptions?: boolean
  /** The node labels that a class's allowedTopologies may use. A class with other labels is rejected. Default: none. */
  readonly topologyKeys?: readonly string[]
  /** The attributes that a VolumeAttributesClass may set, for `modify`. Default: none. */
  readonly attributes?: A
  /**
   * The driver in the `csi` source of its volumes, which a VolumeAttributesClass names. Required for `modify`, because
   * Kubernetes allows attributes classes for CSI volumes only.
   */
  readonly csiDriver?: string
  /**
   * Creates the volume. The request may be repeated with the same `volumeName` after a failure or a crash. A repeated call
   * must find the volume of the earlier call, complete it if necessary, and return it. Calls for different volumes may run
   * concurrently; calls for one volume do not.
   */
  provision(request: ProvisionRequest<P, L>, call: Call): Promise<ProvisionedVolume>
  /**
   * Expands the volume, including its file system, to at least `sizeBytes`, and returns its size. The call may be repeated, even
   * with a size that the volume already has: it then returns the volume's size. If this function is absent, an event on
   * a claim that requests more storage reports that the volume cannot be expanded.
   */
  expand?(request: ExpandRequest, call: Call): Promise<ExpandedVolume>
  /** Changes attributes of the volume. The call may be repeated, and a cancelled change is undone with the earlier values. */
  modify?(request: ModifyRequest<A>, call: Call): Promise<void>
  /** Deletes the volume's storage. Succeeds if it does not exist. */
  delete(volume: ExistingVolume, call: Call): Promise<void>
  /**
   * Returns the volume that an earlier `provision` created with this name, if any. Called if a request is rejected before
   * `provision`, so that no volume is lost if the class was replaced between a crash and the next attempt.
   */
  find?(
    query: { readonly volumeName: string; readonly sizeBytes: bigint },
    call: Call,
  ): Promise<ProvisionedVolume | undefined>
  /**
   * Whether this provisioner creates volumes with such a source. Released volumes without the provisioned-by annotation are
   * deleted if this returns true. Volumes with its annotation for which this returns false are not deleted but reported in
   * events. Default: it owns only volumes with its annotation.
   */
  owns?(volume: ExistingVolume): boolean
}

export type AccessMode = 'ReadWriteOnce' | 'ReadOnlyMany' | 'ReadWriteMany' | 'ReadWriteOncePod'
export type VolumeMode = 'Filesystem' | 'Block'

/** The values that volumes can have for each label: `{ 'example.com/tier': ['fast', 'slow'] }`. */
export type LabelDeclarations = Readonly<Record<string, readonly string[]>>

/** The values that the claim accepts for each declared label: all declared values unless its selector restricts them. */
export type AcceptedLabels<L extends LabelDeclarations> = { readonly [K in keyof L]: readonly L[K][number][] }

export interface ProvisionRequest<
  P extends ParameterDeclarations = ParameterDeclarations,
  L extends LabelDeclarations = LabelDeclarations,
> {
  /** The new volume's name, by default `pvc-` and a UUID. It is the same in every attempt. */
  readonly volumeName: string
  /** Minimum capacity. */
  readonly sizeBytes: bigint
  /** Maximum capacity, if the claim has a limit. */
  readonly sizeLimitBytes: bigint | undefined
  readonly accessModes: readonly AccessMode[]
  readonly volumeMode: VolumeMode
  /** The parameters of the class with defaults, parsed according to their declarations. */
  readonly parameters: ParameterValues<P>
  readonly labels: AcceptedLabels<L>
  /** The mount options of the class. The result need not include them. */
  readonly mountOptions: readonly string[]
  /** The topologies that the class allows, as values of node labels. One must match. If empty, all are allowed. */
  readonly allowedTopologies: readonly Readonly<Record<string, readonly string[]>>[]
  /** The first pod's node, if the class has WaitForFirstConsumer. */
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
  /** Actual capacity, which is at least the requested one. */
  readonly sizeBytes: bigint | number
  /** Exactly one source, which defines how nodes access the volume. */
  readonly source: VolumeSource
  /** Labels of the volume, including an accepted value for each label that the claim's selector requires. */
  readonly labels?: Readonly<Record<string, string>>
  /** Data for `delete`. It must contain no credentials and no references to them, because users can read volumes. */
  readonly annotations?: Readonly<Record<string, string>>
  /** The volume can be used on nodes that have all labels of one of these entries. Default: on all nodes. */
  readonly reachableFrom?: readonly Readonly<Record<string, string>>[]
  /** Mount options in addition to those of the class. */
  readonly mountOptions?: readonly string[]
}

export interface ExpandRequest {
  readonly volume: ExistingVolume
  /** Minimum capacity. */
  readonly sizeBytes: bigint
}

export interface ExpandedVolume {
  /** Actual capacity, which is at least the requested one. */
  readonly sizeBytes: bigint | number
}

export interface ModifyRequest<A extends ParameterDeclarations = ParameterDeclarations> {
  readonly volume: ExistingVolume
  /** The attributes to change, parsed according to their declarations. Absent ones do not change. */
  readonly attributes: Partial<ParameterValues<A>>
}

/** A PersistentVolume of the cluster. */
export interface ExistingVolume {
  readonly name: string
  readonly source: Partial<VolumeSources>
  readonly sizeBytes: bigint
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
}

export interface Call {
  /** Aborted when the process stops or the call exceeds its timeout. The plugin should then stop and throw. */
  readonly signal: AbortSignal
}

/** The sources that a volume can have, with the fields of a PersistentVolume. */
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
