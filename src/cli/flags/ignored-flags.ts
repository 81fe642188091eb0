// Flags and feature gates of the upstream sidecars that have no effect here. A sidecar command accepts them, so that a
// deployment can replace the image and keep its arguments, and logs once that they have no effect. Other unknown flags
// and gates are errors, because the user expects an effect.
import { type Command, Option } from 'commander'

/**
 * Flags of the Go runtime, of the upstream log library and its old versions, of obsolete releases, and of node health.
 */
export const IGNORED_BOOLEAN_FLAGS: readonly string[] = [
  ...['--automaxprocs', '--enable-pprof', '--dummy', '--logtostderr', '--alsologtostderr', '--one_output'],
  ...[
    '--enable-node-watcher',
    '--skip_headers',
    '--skip_log_headers',
    '--add_dir_header',
    '--log-text-split-stream',
    '--log-json-split-stream',
  ],
].map((flag) => `${flag} [true|false]`)

export const IGNORED_VALUE_FLAGS: readonly string[] = [
  ...['--vmodule', '--stderrthreshold', '--log_dir', '--log_file', '--log_file_max_size', '--log_backtrace_at'],
  ...['--log-flush-frequency', '--log-text-info-buffer-size', '--log-json-info-buffer-size'],
  ...['--leader-election-type', '--leader-election-identity', '--connection-timeout'],
].map((flag) => `${flag} <value>`)

const ignoredOptions = (ownFlags: readonly string[]): Option[] =>
  [...IGNORED_BOOLEAN_FLAGS, ...IGNORED_VALUE_FLAGS, ...ownFlags.map((flag) => `${flag} <value>`)].map(
    (flag) => new Option(flag),
  )

/** Adds the flags without an entry in the help. `ownFlags` are names of flags that only this command ignores. */
export function addIgnoredFlags(command: Command, ownFlags: readonly string[] = []): void {
  for (const option of ignoredOptions(ownFlags)) command.addOption(option.hideHelp())
}

/** Returns the ignored flags and gates that are set. */
export function findIgnoredFlags(
  { featureGates = '', ...flags }: Readonly<Record<string, unknown>>,
  ownFlags: readonly string[] = [],
): readonly string[] {
  const names = ignoredOptions(ownFlags)
    .filter((option) => flags[option.attributeName()] !== undefined)
    .map((option) => option.long!)
  const gates = String(featureGates)
    .split(',')
    .map((gate) => gate.trim())
    .filter(isIgnoredGate)
  return [...names, ...gates.map((gate) => `--feature-gates ${gate}`)]
}

/** Gates of logs, metrics and clients in Go, and the release of the lease at exit, which Stowage always performs. */
const IGNORED_GATES: readonly string[] = [
  ...['ContextualLogging', 'LoggingAlphaOptions', 'LoggingBetaOptions', 'LoggingStableOptions'],
  ...['NativeHistograms', 'ComponentFlagz', 'ComponentStatusz', 'ReleaseLeaderElectionOnExit'],
  ...['WatchListClient', 'InformerResourceVersion', 'InOrderInformers', 'ClientsAllowCBOR', 'ClientsPreferCBOR'],
]

/** `gate` is an entry of --feature-gates: `ContextualLogging=true`. */
export const isIgnoredGate = (gate: string): boolean => {
  const [name = '', value = ''] = gate.split('=').map((part) => part.trim())
  return IGNORED_GATES.includes(name) && /^(true|false)$/i.test(value)
}
