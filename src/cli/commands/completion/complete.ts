// Computes the candidates for the last word of a command line: commands, flags, the values of a flag, and names of
// objects in the cluster.
import type { Command, Option } from 'commander'
import { OBJECT_KIND_NAMES } from '../retry/object-kinds.ts'
import { TARGET_KIND_NAMES } from '../why/parse-target.ts'
import { SCRIPT_NAMES } from './script.ts'

/** Names of objects in the cluster. The lists are empty if the server is unreachable. */
export interface ObjectNames {
  namespaces(): Promise<readonly string[]>
  /** Returns the claims in the namespace. Default: the kubeconfig's namespace. */
  claims(namespace: string | undefined): Promise<readonly string[]>
  attributesClasses(): Promise<readonly string[]>
  csiDrivers(): Promise<readonly string[]>
  /** IDs of bootstrap tokens. */
  tokens(): Promise<readonly string[]>
  /** Returns the objects of a kind of commands/retry/object-kinds.ts, as KIND/NAME. */
  objects(kind: string, namespace: string | undefined): Promise<readonly string[]>
}

export type Completion = { readonly is: 'values'; readonly values: readonly string[] } | { readonly is: 'file' }

export interface CommandLine {
  /** The words after `stowage`. The last one is incomplete and may be empty. */
  readonly words: readonly string[]
  /** Returns the names of objects in the cluster of the kubeconfig. */
  objectNames(kubeconfig: string | undefined): ObjectNames
}

export async function complete(program: Command, { words, objectNames }: CommandLine): Promise<Completion> {
  const { given: givenWords, prefix } = splitWords(words)
  if (givenWords.length === 0) return filterCandidates([...commandNames(program), '--help', '--version'], prefix)
  let command = program
  let remainingWords = givenWords
  while (command.commands.length > 0) {
    if (remainingWords.length === 0) return filterCandidates([...commandNames(command), '--help'], prefix)
    const child = command.commands.find((candidate) => candidate.name() === remainingWords[0])
    if (!child) return filterCandidates([], prefix)
    command = child
    remainingWords = remainingWords.slice(1)
  }

  const { flags, positionals, pendingOption } = readFlags(command, remainingWords)
  const names = objectNames(flags.get('--kubeconfig'))
  if (pendingOption) return completeValue(pendingOption, names, prefix)
  if (prefix.startsWith('-')) {
    return filterCandidates([...visibleOptions(command).map(({ long }) => long!), '--help'], prefix)
  }
  const argument = command.registeredArguments[Math.min(positionals.length, command.registeredArguments.length - 1)]
  if (argument?.argChoices) return filterCandidates(argument.argChoices, prefix)
  switch (argument?.name()) {
    case 'claims': {
      const claims = await names.claims(flags.get('--namespace'))
      return filterCandidates(
        claims.filter((claim) => !positionals.includes(claim)),
        prefix,
      )
    }
    case 'object': {
      if (positionals.length > 0) return filterCandidates([], prefix)
      const [kind = '', name] = prefix.split('/')
      if (name === undefined) {
        const kindNames = KIND_NAMES[command.name()] ?? OBJECT_KIND_NAMES
        return filterCandidates(
          kindNames.map((kindName) => `${kindName}/`),
          prefix,
        )
      }
      return filterCandidates(await names.objects(kind, flags.get('--namespace')), prefix)
    }
    case 'id':
      return filterCandidates(positionals[0] === 'delete' ? await names.tokens() : [], prefix)
    case 'shell':
      return filterCandidates(positionals.length === 0 ? SCRIPT_NAMES : [], prefix)
    case 'command':
      return filterCandidates(positionals.length === 0 ? commandNames(program) : [], prefix)
    case 'group':
    case undefined:
      return filterCandidates([], prefix)
    default:
      return { is: 'file' }
  }
}

/** The kinds that a command accepts. Default: those of `stowage retry`. */
const KIND_NAMES: Readonly<Record<string, readonly string[]>> = { why: TARGET_KIND_NAMES, timeline: ['pvc', 'pv'] }

/** Splits the last word from the others. A flag and its value become two words, even if a shell passes them as `--flag=value`. */
function splitWords(words: readonly string[]): { given: readonly string[]; prefix: string } {
  const separatedWords = words.flatMap((word, index) => {
    if (word === '=' && words[index - 1]?.startsWith('--')) return index === words.length - 1 ? [''] : []
    const [, flag, value] = /^(--[\w-]+)=(.*)$/s.exec(word) ?? []
    return flag === undefined ? [word] : [flag, value!]
  })
  return { given: separatedWords.slice(0, -1), prefix: separatedWords.at(-1) ?? '' }
}

function readFlags(command: Command, words: readonly string[]) {
  const flags = new Map<string, string>()
  const positionals: string[] = []
  let pendingOption: Option | undefined
  for (const word of words) {
    if (pendingOption) {
      flags.set(pendingOption.long!, word)
      pendingOption = undefined
      continue
    }
    const option = command.options.find(({ long, short }) => word === long || word === short)
    if (!option) positionals.push(word)
    else if (option.required || option.optional) pendingOption = option
  }
  return { flags, positionals, pendingOption }
}

async function completeValue(option: Option, names: ObjectNames, prefix: string): Promise<Completion> {
  if (option.argChoices) return filterCandidates(option.argChoices, prefix)
  const valueName = /<([^>]+?)(?:\.\.\.)?>/.exec(option.flags)?.[1] ?? ''
  if (['file', 'dir', 'path'].includes(valueName)) return { is: 'file' }
  if (option.long === '--namespace') return filterCandidates(await names.namespaces(), prefix)
  if (option.long === '--driver' || option.long === '--driver-name')
    return filterCandidates(await names.csiDrivers(), prefix)

  if (valueName === 'node') return filterCandidates(await nodeNames(names), prefix)
  if (valueName === 'class') return filterCandidates(await names.attributesClasses(), prefix)
  return filterCandidates([], prefix)
}

/** Node names without the kind. */
const nodeNames = async (names: ObjectNames): Promise<string[]> =>
  (await names.objects('node', undefined)).map((object) => object.slice(object.indexOf('/') + 1))

const commandNames = (program: Command): string[] => visibleCommands(program).map((command) => command.name())

const visibleCommands = (program: Command) =>
  program
    .createHelp()
    .visibleCommands(program)
    .filter((command) => !command.name().startsWith('__'))

const visibleOptions = (command: Command) => command.options.filter(({ long, hidden }) => long && !hidden)

const filterCandidates = (candidates: readonly string[], prefix: string): Completion => ({
  is: 'values',
  values: candidates.filter((candidate) => candidate.startsWith(prefix)),
})
