// Handles the page's keyboard: single keys, `g` followed by a letter, and j and k in a table. Single keys can be
// switched off (WCAG 2.1.4), and are ignored while the user types.
import { signal } from '@preact/signals'
import type { ScreenName } from '../logic/url.ts'
import { readPreference, writePreference } from './preferences.ts'
import { goTo } from './route.ts'

export interface KeyTarget {
  moveFocus(by: number): void
  focusRow(uid: string | undefined): void
}

let grid: KeyTarget | undefined
export const activateGrid = (target: KeyTarget): void => {
  grid = target
}
export const deactivateGrid = (target: KeyTarget): void => {
  if (grid === target) grid = undefined
}
export const focusGridRow = (uid: string | undefined): void => grid?.focusRow(uid)

export const isHelpOpen = signal(false)
export const hasSingleKeys = signal(readPreference('single-keys') !== 'off')
hasSingleKeys.subscribe((isOn) => writePreference('single-keys', isOn ? 'on' : 'off'))

export const GO_KEYS: Readonly<Record<string, ScreenName>> = {
  o: 'overview',
  c: 'claims',
  p: 'capacity',
  n: 'nodes',
  w: 'operations',
  q: 'quotas',
  d: 'drivers',
  b: 'bulk',
}

/** Handlers of the open drawer and of the screen, by key. The most recently registered handlers take precedence. */
const handlers: Readonly<Record<string, () => void>>[] = []

/** Adds handlers for keys until the returned function is called. */
export function addKeys(keys: Readonly<Record<string, () => void>>): () => void {
  handlers.push(keys)
  return () => {
    const index = handlers.indexOf(keys)
    if (index >= 0) handlers.splice(index, 1)
  }
}

const GO_WINDOW_MS = 1_200
let gPressedAtMs = 0

export function startKeys(): void {
  document.addEventListener('keydown', (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return
    if (document.querySelector('dialog[open]')) return // a dialog has its own keys
    if (handleKeyDown(event)) event.preventDefault()
  })
}

function handleKeyDown(event: KeyboardEvent): boolean {
  const { key } = event
  const element = event.target as HTMLElement
  if (element.closest('input, textarea, select, [contenteditable]')) {
    if (key === 'Escape') element.blur()
    return false
  }
  if (key === 'Escape') return handle(key)
  if (!hasSingleKeys.value) return false
  const screen = Date.now() - gPressedAtMs < GO_WINDOW_MS ? GO_KEYS[key] : undefined
  gPressedAtMs = 0
  if (screen) goTo(screen)
  else if (key === 'g') gPressedAtMs = Date.now()
  else if (key === '?') isHelpOpen.value = true
  else if (key === '/') return focusSearch()
  else if (key === 'j') grid?.moveFocus(1)
  else if (key === 'k') grid?.moveFocus(-1)
  else return handle(key)
  return true
}

function handle(key: string): boolean {
  for (const keys of handlers.toReversed()) {
    if (!Object.hasOwn(keys, key)) continue
    keys[key]!()
    return true
  }
  return false
}

function focusSearch(): boolean {
  const search = document.querySelector<HTMLInputElement>('input[type=search]')
  search?.focus()
  search?.select()
  return search !== null
}
