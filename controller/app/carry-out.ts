/**
 * Decides and acts in turn, one effect at a time, until the stored status permits nothing more.
 *
 * Guarantee: each decision is made from what the effect before it has left, so that an effect that failed or was refused is never followed by one that counts on it.
 */
import { type AppDecision, type AppFacts, decideApp, type Effect } from './decide/app.ts'
import { askKey } from './decide/facts.ts'
import type { View } from './view.ts'

/** More effects than that in one go are a loop that nobody foresaw. */
const most = 1000

export interface Hands {
  /** Does it, and answers how things look afterwards. */
  carryOut(effect: Effect, view: View): Promise<View>
  facts(): AppFacts
}

export async function settle(
  first: View,
  hands: Hands,
): Promise<{ readonly view: View; readonly decision: AppDecision }> {
  const done = new Set<string>()
  let view = first
  for (let count = 0; count < most; count++) {
    const decision = decideApp(view, hands.facts())
    const first = firstOf(decision, done)
    if (!first) return { view, decision }
    done.add(first.key)
    view = await hands.carryOut(first.effect, view)
  }
  throw new Error(`more than ${most} effects in one reconciliation of ${view.app.metadata.name}`)
}

/** What comes first of what this reconciliation has not done yet. */
export function firstOf(
  { effects }: Pick<AppDecision, 'effects'>,
  done: ReadonlySet<string>,
): { readonly effect: Effect; readonly key: string } | undefined {
  const effect = effects.find(one => !done.has(keyOf(one)))
  return effect && { effect, key: keyOf(effect) }
}

/** The same for what is to be done once. A status is written whenever it differs. */
function keyOf(effect: Effect): string {
  switch (effect.do) {
    case 'ask':
      return `ask ${askKey(effect.ask)}`
    case 'createOperation':
      return `createOperation ${effect.name}`
    case 'writeOperation':
      return `writeOperation ${effect.op.metadata.uid} ${effect.op.metadata.resourceVersion}`
    case 'holdOperation':
    case 'releaseOperation':
    case 'cancelOperation':
      return `${effect.do} ${effect.op.metadata.uid}`
    default:
      return effect.do
  }
}
