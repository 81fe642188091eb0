// What the author of a provisioner writes: its name, what it understands, how to make a volume and how to delete one.
// Everything around it (which claims, retries, events, the PersistentVolume object, crashes) is done by whoever runs it.
// Plain types only, since they are published as they are; the failures it may throw are failures.ts.
import type { ParameterDeclarations, ParameterValues } from './parameter.ts'

export interface ProvisionerPlugin<
  P extends ParameterDeclarations = ParameterDeclarations,
  L extends LabelDeclarations = LabelDeclarations,
> {
  /** What storage classes call it: `<your domain>/<name>`, such as `example.com/fast-disks`. */
  readonly name: string
  /** The parameters a storage class may give. A class with any other is refused. Default: none. */
  readonly parameters?: P
  /** The labels a claim's selector may ask for. A selector with any other is refused. Default: none. */
  readonly labels?: L
  /** How its volumes can be mounted. Default: ReadWriteOnce and ReadWriteOncePod. */
  readonly accessModes?: readonly AccessMode[]
  /** Default: Filesystem. */
  readonly volumeModes?: readonly VolumeMode[]
  /** Whether its volumes can be mounted with the mount options of a class. Default: a class with any is refused. */
  readonly takesMountOptions?: boolean
  /** The node labels it understands in a class's allowedTopologies. Default: a class with any is refused. */
  readonly topologyKeys?: readonly string[]
  /**
   * Makes the volume. The same request may come again, after a failure or a crash, always with the same
   * `volumeName`: then finds what it made before, finishes it if need be, and returns the same volume.
   * Calls for different volumes run at once; calls for one volume do not.
   */
  provision(request: ProvisionRequest<P, L>, call: Call): Promise<MadeVolume>
  /** Deletes what is behind the volume. What is not there any more is deleted: that is no error. */
  delete(volume: ExistingVolume, call: Call): Promise<void>
  /**
   * What an earlier `provision` made under this name, if anything. Asked when a request is refused before `provision`
   * is called, so that nothing is forgotten where the class was replaced between a crash and the next try.
   */
  find?(
    wanted: { readonly volumeName: string; readonly sizeBytes: bigint },
    call: Call,
  ): Promise<MadeVolume | undefined>
  /**
   * Whether the volume's source is one that this provisioner makes. Volumes without a provisioner's name are deleted
   * by the one that says yes; volumes that carry its name and get a no are left alone, with an event. Default: volumes
   * that carry its name, and only those.
   */
  owns?(volume: ExistingVolume): boolean
}

export type AccessMode = 'ReadWriteOnce' | 'ReadOnlyMany' | 'ReadWriteMany' | 'ReadWriteOncePod'
export type VolumeMode = 'Filesystem' | 'Block'

/** By label, the values its volumes can have: `{ 'example.com/tier': ['fast', 'slow'] }`. */
export type LabelDeclarations = Readonly<Record<string, readonly string[]>>

/** By declared label, the values that the claim accepts: at least one, all of them where its selector is silent. */
export type AcceptedLabels<L extends LabelDeclarations> = { readonly [K in keyof L]: readonly L[K][number][] }

export interface ProvisionRequest<
  P extends ParameterDeclarations = ParameterDeclarations,
  L extends LabelDeclarations = LabelDeclarations,
> {
  /** The name of the volume to be, unique and the same in every try: `pvc-` and a UUID. */
  readonly volumeName: string
  /** The least the volume must hold. */
  readonly sizeBytes: bigint
  /** The most it may hold, where the claim says so. */
  readonly sizeLimitBytes: bigint | undefined
  readonly accessModes: readonly AccessMode[]
  readonly volumeMode: VolumeMode
  /** Those of the class, read and checked as they were declared, defaults filled in. */
  readonly parameters: ParameterValues<P>
  readonly labels: AcceptedLabels<L>
  /** Those of the class; they need not be repeated in what is returned. */
  readonly mountOptions: readonly string[]
  /** Where the class allows volumes: node labels with the values each may have, any one of them. Empty: anywhere. */
  readonly allowedTopologies: readonly Readonly<Record<string, readonly string[]>>[]
  /** The node of the first pod, where the class waits for it. */
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

export interface MadeVolume {
  /** What it really holds: at least what was asked for. */
  readonly sizeBytes: bigint | number
  /** How nodes reach it: exactly one of the sources. */
  readonly source: VolumeSource
  /** Among them one accepted value for each label the claim's selector asks for. */
  readonly labels?: Readonly<Record<string, string>>
  /** What `delete` will need to know; anyone may read it, so no credentials and nothing that points to them. */
  readonly annotations?: Readonly<Record<string, string>>
  /** Node labels: the volume can be used on nodes that have all labels of any one of these. Default: everywhere. */
  readonly reachableFrom?: readonly Readonly<Record<string, string>>[]
  /** In addition to those of the class. */
  readonly mountOptions?: readonly string[]
}

/** A volume as it stands in the cluster. */
export interface ExistingVolume {
  readonly name: string
  readonly source: Partial<VolumeSources>
  readonly sizeBytes: bigint
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
}

export interface Call {
  /** Fires when the process is told to stop or the call takes too long: give up, and throw. */
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

/** One of them, and no other. */
export type VolumeSource = {
  [K in keyof VolumeSources]: { readonly [S in K]: VolumeSources[S] } & {
    readonly [S in Exclude<keyof VolumeSources, K>]?: never
  }
}[keyof VolumeSources]
