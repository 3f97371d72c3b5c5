"""Runs an episode of a trained agent in the environment itself."""

import gymnasium

import tengen

if __name__ == "__main__":
    env = gymnasium.make("CartPole-v1")
    with tengen.Run("runs/CartPole-v1").agent() as agent:
        observation, _ = env.reset(seed=1)
        agent.reset()
        score, is_over = 0.0, False
        while not is_over:
            action = agent.act(observation)
            observation, reward, ended, cut, _ = env.step(action)
            score += float(reward)
            is_over = ended or cut
    print(score)
